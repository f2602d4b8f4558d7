"""Refusals in the words of an API server, raised by the store and sent by the HTTP side as a Status.

Every refusal is one of `kube.port`'s errors, so that code running in process against the store meets the same
exceptions as code that goes through a client. `refusal` is the other direction: it turns a status code and a
reason into the matching class. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lstqueue.kube import port


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: the field, the kind of problem in the server's vocabulary, and what to do about it."""

    path: str
    problem: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" + (f": {self.detail}" if self.detail else "")


class BrokenRulesError(port.InvalidError):
    """422 that still knows each broken rule, for the causes in its Status."""

    def __init__(self, message: str, violations: Sequence[Violation]) -> None:
        super().__init__(422, "Invalid", message)
        self.violations = violations


def required(path: str, detail: str = "") -> Violation:
    """A field that must be there is not."""
    return Violation(path, "Required value", detail)


def bad(path: str, value: object, detail: str) -> Violation:
    """A field has a value that its kind does not allow."""
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    return Violation(path, f"Invalid value: {shown[:200]}", detail)


def unsupported(path: str, value: object, allowed: Sequence[str]) -> Violation:
    """A field has a value outside its list."""
    names = ", ".join(f'"{name}"' for name in allowed)
    return Violation(path, f'Unsupported value: "{value}"', f"supported values: {names}")


def forbidden_field(path: str, detail: str) -> Violation:
    """A change of this field, or its presence here, is not allowed."""
    return Violation(path, "Forbidden", detail)


def qualified(resource: port.Resource) -> str:
    """`pods`, `jobs.batch`: how the server names a resource in its messages."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def not_found(resource: port.Resource, name: str) -> port.NotFoundError:
    """404 for an object."""
    return port.NotFoundError(404, "NotFound", f'{qualified(resource)} "{name}" not found')


def no_such_path() -> port.NotFoundError:
    """404 for a resource, a subresource or a path that this server does not have."""
    return port.NotFoundError(404, "NotFound", "the server could not find the requested resource")


def no_containers() -> port.NotFoundError:
    """404 for what needs the containers of a pod."""
    message = "pods of the embedded API are simulated: they have no logs, and nothing can be run in them"
    return port.NotFoundError(404, "NotFound", message)


def already_exists(resource: port.Resource, name: str) -> port.ConflictError:
    """409 for a name that is taken."""
    return port.ConflictError(409, "AlreadyExists", f'{qualified(resource)} "{name}" already exists')


def conflict(resource: port.Resource, name: str, why: str = "") -> port.ConflictError:
    """409 for a write that was prepared against an older state."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    return port.ConflictError(
        409, "Conflict", f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    )


def invalid(resource: port.Resource, name: str, violations: Sequence[Violation]) -> port.InvalidError:
    """422 with every broken rule."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    text = ", ".join(str(violation) for violation in violations)
    if len(violations) > 1:
        text = f"[{text}]"
    return BrokenRulesError(f'{kind} "{name}" is invalid: {text}', violations)


def bad_options(kind: str, violation: Violation) -> port.InvalidError:
    """422 for the options of a request, such as ListOptions."""
    return BrokenRulesError(f'{kind}.meta.k8s.io "" is invalid: {violation}', [violation])


def unprocessable(message: str) -> port.InvalidError:
    """422 for a patch that cannot be applied to the object."""
    return port.InvalidError(
        422, "Invalid", f"the server rejected our request due to an error in our request: {message}"
    )


def bad_request(message: str) -> port.InvalidError:
    """400: the request itself makes no sense."""
    return port.InvalidError(400, "BadRequest", message)


def forbidden(resource: port.Resource, name: str, why: str) -> port.ForbiddenError:
    """403 by an admission rule."""
    return port.ForbiddenError(403, "Forbidden", f'{qualified(resource)} "{name}" is forbidden: {why}')


def gone(message: str) -> port.GoneError:
    """410: the resourceVersion or the continue token is older than what the server remembers."""
    return port.GoneError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> port.GoneError:
    """410 for a watch that starts before the oldest event kept."""
    return gone(f"too old resource version: {asked} ({oldest})")


def media_type(sent: str, allowed: Sequence[str], *, remedy: str = "") -> port.ApiError:
    """415: this server does not read that format. `remedy` says what to do instead, if there is a choice."""
    message = (
        f"the body of the request was in an unknown format ({sent or 'none stated'}) - "
        f"accepted media types include: {', '.join(allowed)}" + (f". {remedy}" if remedy else "")
    )
    return port.ApiError(415, "UnsupportedMediaType", message)


def method(verb: str) -> port.ApiError:
    """405: the resource exists, but not with this verb."""
    return port.ApiError(
        405, "MethodNotAllowed", f"the server does not allow this method ({verb}) on the requested resource"
    )


def built_in(resource: port.Resource) -> port.ApiError:
    """405: what this server is made with."""
    return port.ApiError(
        405,
        "MethodNotAllowed",
        f"{qualified(resource)} are built into this embedded cluster, in the version of lstqueue that runs "
        "it: they are there already, and cannot be changed, created or deleted",
    )


def as_status(error: port.ApiError, resource: port.Resource | None = None, name: str = "") -> port.Object:
    """The Status object that carries an error over the wire."""
    status: port.Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.status,
    }
    details: port.Object = {}
    if resource is not None:
        details = {"group": resource.group, "kind": resource.plural, "name": name}
        details = {key: value for key, value in details.items() if value}
    if isinstance(error, BrokenRulesError):
        details["causes"] = [_cause(violation) for violation in error.violations]
    if error.retry_after is not None:
        details["retryAfterSeconds"] = max(1, round(error.retry_after))
    if details:
        status["details"] = details
    return status


_CAUSES = {
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}


def _cause(violation: Violation) -> port.Object:
    problem = violation.problem.partition(":")[0]
    message = violation.problem + (f": {violation.detail}" if violation.detail else "")
    return {"reason": _CAUSES.get(problem, "FieldValueInvalid"), "message": message, "field": violation.path}


_CLASSES: dict[int, type[port.ApiError]] = {
    400: port.InvalidError,
    401: port.ForbiddenError,
    403: port.ForbiddenError,
    404: port.NotFoundError,
    409: port.ConflictError,
    410: port.GoneError,
    422: port.InvalidError,
    429: port.UnavailableError,
}


def refusal(status: int, reason: str, message: str, *, retry_after: float | None = None) -> port.ApiError:
    """The error of the class that belongs to an HTTP status."""
    family = _CLASSES.get(status, port.UnavailableError if status >= 500 else port.ApiError)
    return family(status, reason, message, retry_after=retry_after)
