"""Every row belongs to a workspace; until there are others, to this one."""

DEFAULT_WORKSPACE = "default"
