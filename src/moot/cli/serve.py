"""`moot serve`: the REST API on this machine."""

import ipaddress
import socket

import typer
import uvicorn

from moot.cli.outcome import command
from moot.cli.texts import SAY, say
from moot.shared.domain.errors import InvalidInput


def run_server(host: str, port: int) -> None:
    with command():
        if not is_loopback(host):
            raise InvalidInput(SAY("serve.not_loopback", host=host))
        _refuse_taken(host, port)
        typer.echo(say("serve.listening", host=host, port=port))
        uvicorn.run("moot.main:create_app", factory=True, host=host, port=port, log_level="warning")


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach `host`. A name other than localhost may point anywhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as e:
            raise InvalidInput(SAY("serve.port_taken", host=host, port=port, reason=e.strerror)) from e
