"""The server of the playground: its page, and answers to what the page asks. It listens on this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from .. import __version__
from ..errors import ArgumentError
from .examples import examples
from .guard import Application, Guard
from .workers import Busy, Worker

PAGE = Path(__file__).parent / "page"
KINDS = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain", ".svg": "image/svg+xml"}
GIGABYTE = 2**30
MOST_SIZE = 4096  # of a slider
LOGGER = logging.getLogger("tensorswap.playground")


@dataclass(frozen=True)
class Limits:
    """What a request, and the work on it, may take."""

    body: int = 256 * 1024  # bytes
    body_seconds: float = 10.0
    reading: float = 5.0  # seconds for what is done while a text is typed
    working: float = 60.0  # seconds for a plan, a run, a check
    reading_memory: int = 4 * GIGABYTE  # of address space, of which a process uses the smaller part
    working_memory: int = 8 * GIGABYTE


@dataclass
class Playground:
    """The application for one port. One child reads texts as they are typed; another one plans, compiles and runs, so
    that neither waits for the other."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self.reader = Worker(self.limits.reading_memory, "text")
        self.worker = Worker(self.limits.working_memory, "all")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def application(self) -> Application:
        routes = [
            Route("/", self.page),
            Route("/assets/{name}", self.asset),
            Route("/api/gallery", self.gallery),
            Route("/api/{job}", self.work, methods=["POST"]),
        ]
        return Guard(Starlette(routes=routes, lifespan=self.lifespan), self.token, self.port)

    @contextlib.asynccontextmanager
    async def lifespan(self, application: Any) -> AsyncIterator[None]:
        self.reader.start_soon()
        self.worker.start_soon()
        yield
        await asyncio.gather(self.reader.close(), self.worker.close())

    # -- what is always the same

    async def page(self, request: Request) -> Response:
        text = (PAGE / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(text.replace("{{nonce}}", request.scope["nonce"]).replace("{{version}}", __version__))

    async def asset(self, request: Request) -> Response:
        names = {path.name: path for path in PAGE.iterdir() if path.suffix in KINDS}
        found = names.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return FileResponse(found, media_type=KINDS[found.suffix])

    async def gallery(self, request: Request) -> Response:
        return JSONResponse([example.as_json() for example in examples()])

    # -- what children do

    async def work(self, request: Request) -> Response:
        job = _job(request.path_params["job"], await self.body(request))
        reading = job["job"] == "analyse"
        worker, seconds = (self.reader, self.limits.reading) if reading else (self.worker, self.limits.working)
        try:
            told = await worker.ask(job, seconds)
        except Busy:
            raise HTTPException(503, "more is asked than can be done: try again") from None
        if "traceback" in told:
            LOGGER.error("%s", told.pop("traceback"))
        return JSONResponse(told)

    async def body(self, request: Request) -> Any:
        """The JSON of a request that is neither too long nor too slow."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "only JSON is read")
        try:
            data = await asyncio.wait_for(self.read(request), self.limits.body_seconds)
            return json.loads(data)
        except TimeoutError:
            raise HTTPException(408, "the request took too long to come", {"connection": "close"}) from None
        except (ValueError, RecursionError, ClientDisconnect):
            raise HTTPException(400, "the request is no JSON") from None

    async def read(self, request: Request) -> bytes:
        data = b""
        async for piece in request.stream():
            data += piece
            if len(data) > self.limits.body:
                raise HTTPException(413, f"at most {self.limits.body} bytes are read", {"connection": "close"})
        return data


def _job(name: str, told: Any) -> dict[str, Any]:
    """A job as a child reads it, with nothing in it that was not asked for."""
    if name not in ("analyse", "plan", "run", "check"):
        raise HTTPException(404)
    text = told.get("text") if isinstance(told, dict) else None
    if not isinstance(text, str):
        raise HTTPException(422, "text is a text")
    if name == "analyse":
        kind = told.get("derivative")
        return {"job": name, "text": text, "derivative": kind if kind in ("tangent", "second") else ""}
    sizes, seed = told.get("sizes", {}), told.get("seed", 0)
    whole = isinstance(sizes, dict) and all(
        isinstance(size, int) and not isinstance(size, bool) and abs(size) <= MOST_SIZE for size in sizes.values()
    )
    if not whole:
        raise HTTPException(422, f"sizes are whole numbers up to {MOST_SIZE}")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise HTTPException(422, f"seed is a whole number from 0 to {2**32 - 1}")
    return {"job": name, "text": text, "sizes": sizes, "seed": seed}


def listening(port: int | None, usual: int) -> socket.socket:
    """A socket of this machine at the port asked for; at the usual one, or any that is free, if none is."""
    for candidate in (usual, 0) if port is None else (port,):
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", candidate))
        except OSError as error:
            found.close()
            if port is not None:
                raise ArgumentError(f"port {port} cannot be had: {error.strerror}", hint="leave --port out") from None
            continue
        found.listen(128)
        return found
    raise ArgumentError("no port of this machine can be had", hint="name one: --port 8765")
