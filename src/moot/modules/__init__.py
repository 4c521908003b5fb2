"""The contexts of the desk, one folder each; `docs/architecture.md` says what each of them owns."""
