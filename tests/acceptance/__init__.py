"""Which tests prove which acceptance id: read from the `accepts` marks, shown in `docs/acceptance.md`.

`ids.toml` lists the ids, `marks` reads the tests, `page` draws the tables; `make acceptance` runs it.
"""
