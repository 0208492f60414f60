"""A playground that listens, and a client that sends what a browser never would."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import uvicorn

from tensorswap.playground.guard import TOKEN
from tensorswap.playground.server import PAGE, Limits, Playground, listening

__all__ = ["PAGE", "Answer", "Client", "Limits", "listening", "running"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Client:
    """Sends requests with the right host and token, unless it is told others."""

    playground: Playground

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.playground.port}"

    def send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | Iterable[bytes] = b""
    ) -> Answer:
        given = {"host": self.host, TOKEN: self.playground.token, **(headers or {})}
        connection = HTTPConnection("127.0.0.1", self.playground.port, timeout=120)
        connection.putrequest(method, path, skip_host=True)
        if isinstance(body, bytes):
            given["content-length"] = str(len(body))
        else:
            given["transfer-encoding"] = "chunked"
        for name, value in given.items():
            connection.putheader(name, value.encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
            connection.endheaders(body if body else None, encode_chunked=not isinstance(body, bytes))
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, told: Any, **headers: str) -> Answer:
        sent = {"content-type": "application/json", **{name.replace("_", "-"): v for name, v in headers.items()}}
        return self.send("POST", path, sent, json.dumps(told).encode())

    def ask(self, job: str, **told: Any) -> dict[str, Any]:
        """The answer to a job that is one."""
        answer = self.post(f"/api/{job}", told)
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@contextlib.contextmanager
def running(children: bool = True, limits: Limits | None = None) -> Iterator[Client]:
    """A playground on a port of its own; without children nothing is answered that needs one."""
    found = listening(0, 0)
    playground = Playground(found.getsockname()[1], limits=limits or Limits())
    settings = uvicorn.Config(playground.application(), log_level="error", lifespan="on" if children else "off")
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Client(playground)
    finally:
        server.should_exit = True
        thread.join()
