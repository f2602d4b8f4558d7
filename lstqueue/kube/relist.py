"""One LIST, compared with what an intake believes: for a kind whose events come from somebody else's watch.

Such a watch may lose deletions when it lists again. A relist every few minutes finds them; it repairs nothing
itself and retries nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lstqueue.kube import port


@dataclass(frozen=True, slots=True)
class Relisted:
    """What was found.

    Attributes:
        changed: objects that are new or at another version, as listed.
        vanished: UIDs that are gone.
    """

    changed: list[port.Object]
    vanished: list[str]


async def relist(
    api: port.KubeApi, resource: port.Resource, known: Mapping[str, str], *, page_size: int = 500
) -> Relisted:
    """List a kind once and compare it with what is known from elsewhere.

    Args:
        api: where to list.
        resource: the kind.
        known: UID to resourceVersion. It may be the live mapping of an intake: what moves in it while the
            list is under way is left out of the result, since the intake evidently hears of it, and hears
            later news. (What came and went meanwhile may be told as new; the next one takes it back.)
        page_size: objects per page.

    Raises:
        ApiError: a page could not be had; `GoneError` when the list took too long.
    """
    before = dict(known)
    seen: set[str] = set()
    changed: list[port.Object] = []
    token = ""
    while True:
        page = await api.list_page(resource, limit=page_size, continue_token=token)
        for item in page.items:
            metadata = item["metadata"]
            uid = metadata["uid"]
            seen.add(uid)
            if before.get(uid) != metadata["resourceVersion"]:
                changed.append(item)
        token = page.continue_token
        if not token:
            break
    return Relisted(
        changed=[item for item in changed if _still(known, before, item["metadata"]["uid"])],
        vanished=[uid for uid in before if uid not in seen and _still(known, before, uid)],
    )


def _still(known: Mapping[str, str], before: Mapping[str, str], uid: str) -> bool:
    return known.get(uid) == before.get(uid)
