"""Serves the playground until it is interrupted."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from socket import socket

import uvicorn

from .server import Playground, listening

USUAL = 8421  # the port, if it is free


class _Server(uvicorn.Server):
    """Says when it is ready."""

    ready: Callable[[], None]

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


def serve(port: int | None, browse: bool, program: str) -> None:
    """`program` is the part of the address behind `#`, if a program is to be shown at once."""
    found = listening(port, USUAL)
    playground = Playground(found.getsockname()[1])
    address = playground.address + (f"#{program}" if program else "")
    settings = uvicorn.Config(
        playground.application(), log_level="warning", access_log=False, server_header=False, ws="none",
        limit_concurrency=64, timeout_keep_alive=5, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=32768,
    )  # fmt: skip

    def ready() -> None:
        print(f"playground: {address}\nPress Ctrl+C to end it.", flush=True)
        if browse:
            webbrowser.open(address)

    server = _Server(settings)
    server.ready = ready
    server.run(sockets=[found])
