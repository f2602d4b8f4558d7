"""The operator: cache, loop and writer around the decision engine; `shell` is its only user of kopf."""
