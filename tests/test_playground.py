"""The playground's server: who may ask, what is refused, and what happens to work that takes too long or too much."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tensorswap.command.play import shown
from tensorswap.errors import ArgumentError, SwapError
from tensorswap.playground.examples import examples
from tensorswap.playground.fragment import fragment, from_link
from tensorswap.playground.guard import REFUSED, TOKEN
from tensorswap.playground.workers import Busy, Worker

if TYPE_CHECKING:
    from .playground_client import Client

playground_client = pytest.importorskip(
    "tests.playground_client", reason="the server needs starlette and uvicorn: pip install 'tensorswap[playground]'"
)
running = playground_client.running
MATMUL = "Y[i,j] += A[i,k] * B[k,j]"
GIGABYTE = 2**30


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """With children that work."""
    with running() as client:
        yield client


@pytest.fixture(scope="module")
def guarded() -> Iterator[Client]:
    """Without them: for what never gets so far."""
    with running(children=False) as client:
        yield client


def page_of(client: Client) -> str:
    return f"/?token={client.playground.token}"


# -- who may ask


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token={}%00", "/?token={}x", "/?x={}"])
def test_the_page_needs_the_token(guarded: Client, path: str) -> None:
    answer = guarded.get(path.format(guarded.playground.token))
    assert (answer.status, answer.text) == (403, REFUSED["token"])


def test_the_page_comes_with_the_token(guarded: Client) -> None:
    answer = guarded.get(page_of(guarded))
    assert answer.status == 200
    assert "tensorswap" in answer.text


@pytest.mark.parametrize("token", ["", "wrong", "ä", "{}x"])
def test_answers_need_the_token(guarded: Client, token: str) -> None:
    wrong = {TOKEN.replace("-", "_"): token.format(guarded.playground.token)}
    for answer in (
        guarded.get("/api/gallery", **wrong),
        guarded.post("/api/analyse", {"text": MATMUL}, **wrong),
        guarded.get(f"/api/gallery?token={guarded.playground.token}", **wrong),
    ):
        assert answer.status == 403
    assert guarded.get("/api/gallery").status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example:{}", "evil.example", "127.0.0.1:1", "127.0.0.1", "localhost.evil.example:{}", "", "127.0.0.1:{}0"],
)
def test_a_name_that_another_site_gave_this_machine_is_refused(guarded: Client, host: str) -> None:
    for path in (page_of(guarded), "/api/gallery", "/assets/main.js"):
        answer = guarded.get(path, host=host.format(guarded.playground.port))
        assert (answer.status, answer.text) == (403, REFUSED["host"])


def test_both_names_of_this_machine_are_taken(guarded: Client) -> None:
    assert guarded.get(page_of(guarded), host=f"localhost:{guarded.playground.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{}", "http://127.0.0.1:1"])
def test_another_page_may_not_ask(guarded: Client, origin: str) -> None:
    answer = guarded.post("/api/analyse", {"text": MATMUL}, origin=origin.format(guarded.playground.port))
    assert (answer.status, answer.text) == (403, REFUSED["origin"])


def test_a_request_that_a_browser_calls_foreign_is_refused(guarded: Client) -> None:
    assert guarded.get("/api/gallery", sec_fetch_site="cross-site").status == 403
    assert guarded.get("/api/gallery", sec_fetch_site="same-origin", origin=f"http://{guarded.host}").status == 200
    assert guarded.get(page_of(guarded), sec_fetch_site="cross-site").status == 200  # a link


def test_no_script_may_stand_in_the_page(guarded: Client) -> None:
    answer = guarded.get(page_of(guarded))
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    nonce = re.search(r'name="csp-nonce" content="([\w-]+)"', answer.text)
    assert nonce is not None
    assert f"'nonce-{nonce[1]}'" in policy["style-src"]
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", answer.text))
    assert not re.search(r"<[^>]+\son\w+=", answer.text)
    again = guarded.get(page_of(guarded))
    assert nonce[1] not in again.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert guarded.get("/").headers["x-frame-options"] == "DENY"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    known = {"http://www.w3.org", "https://", "http://", "https://codemirror.net", "http://codemirror.net"}
    for path in playground_client.PAGE.iterdir():
        if path.suffix != ".txt":
            found = set(re.findall(r"https?://[\w.-]*", path.read_text(encoding="utf-8")))
            assert found <= known, path.name


@pytest.mark.parametrize("name", ["../server.py", "..%2fserver.py", "index.html", "nothing.js", "%2e%2e/server.py", ""])
def test_only_files_of_the_page_are_given(guarded: Client, name: str) -> None:
    assert guarded.get(f"/assets/{name}").status in (403, 404)


def test_every_file_that_the_page_names_is_there(guarded: Client) -> None:
    texts = [
        path.read_text(encoding="utf-8") for path in playground_client.PAGE.iterdir() if path.suffix in (".html", ".js")
    ]
    names = {name for text in texts for name in re.findall(r'"(?:assets|\.)/([\w.]+)"', text)}
    assert len(names) > 15
    for name in names:
        assert guarded.get(f"/assets/{name}").status == 200, name


# -- what is asked


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff", "application/json", 400),
        (b'{"text": "Y[i] = X[i]"}', "text/plain", 415),
        (b'{"text": "Y[i] = X[i]"}', "", 415),
        (b"[]", "application/json", 422),
        (b"null", "application/json", 422),
        (b'{"text": 3}', "application/json", 422),
        (b'{"text": "%s"}' % (b"x" * 300_000), "application/json", 413),
    ],
)
def test_what_is_no_job_is_refused(guarded: Client, content: bytes, kind: str, status: int) -> None:
    assert guarded.send("POST", "/api/analyse", {"content-type": kind}, content).status == status


@pytest.mark.parametrize(
    "told", [{"sizes": 3}, {"sizes": {"i": -5000}}, {"sizes": {"i": 10**9}}, {"sizes": {"i": True}}, {"seed": "x"},
             {"seed": -1}, {"seed": True}, {"seed": 2**32}, {"sizes": {"i": 2.5}}, {"sizes": None}],
)  # fmt: skip
def test_sizes_and_seeds_are_whole_numbers(guarded: Client, told: dict[str, Any]) -> None:
    refused = guarded.post("/api/run", {"text": MATMUL, **told})
    assert refused.status == 422
    assert refused.text.startswith("sizes are whole numbers" if "sizes" in told else "seed is a whole number")


def test_there_are_no_other_jobs(guarded: Client) -> None:
    assert guarded.post("/api/delete", {"text": MATMUL}).status == 404
    assert guarded.get("/api/analyse").status == 405
    assert guarded.send("PUT", "/api/analyse").status == 405


def test_a_body_that_never_ends_is_not_read_to_its_end(guarded: Client) -> None:
    given = 0

    def endless() -> Iterator[bytes]:
        nonlocal given
        while given < 10**9:
            given += 65536
            yield b" " * 65536

    answer = guarded.send("POST", "/api/analyse", {"content-type": "application/json"}, endless())
    assert answer.status == 413
    assert given < 10**8


# -- what is answered


def test_a_statement_gives_its_adjoint(client: Client) -> None:
    told = client.ask("analyse", text=MATMUL)["answer"]
    assert told["faults"] == []
    lines = [line["text"] for line in told["explanation"]["backward"]]
    assert lines == ["A.grad[i,k] += Y.grad[i,j] * B[k,j]", "B.grad[k,j] += A[i,k] * Y.grad[i,j]"]
    assert [line["statements"] for line in told["explanation"]["backward"]] == [[1], [1]]
    assert told["sliders"]["value"].keys() == {"i", "j", "k"}
    assert told["graph"]["value"].startswith("<svg")


def test_a_mistake_has_its_place_and_its_cure(client: Client) -> None:
    text = "# 𝒳 is one character and two units\ny[i] = A[i,k] * x[k]"
    (fault,) = client.ask("analyse", text=text)["answer"]["faults"]
    units = text.encode("utf-16-le")[2 * fault["start"] : 2 * fault["end"]].decode("utf-16-le")
    assert (units, fault["hint"]) == ("k", "write `+=` to sum over k, or add k to y[i]")
    assert fault["start"] == text.index("k]") + 1


@pytest.mark.parametrize("kind", ["tangent", "second"])
def test_other_derivatives_are_made_when_they_are_asked_for(client: Client, kind: str) -> None:
    lines = client.ask("analyse", text="loss += x[i] ** 3 * y[i]", derivative=kind)["answer"]["derivative"]["value"]
    assert lines
    assert all(line["statements"] == [1] for line in lines)


def test_statements_of_a_call_stand_where_the_call_does(client: Client) -> None:
    text = "P = softmax(S)\nR = softmax(P)\nY[i,k] = R[i,k] * 2\n"
    statements = client.ask("analyse", text=text)["answer"]["explanation"]["statements"]
    starts = [text.count("\n", 0, statement["where"]["start"]) for statement in statements]
    assert starts == [0, 0, 0, 0, 1, 1, 1, 1, 2]


def test_hostile_names_are_escaped(client: Client) -> None:
    told = client.ask("analyse", text="Y[i] = <script>alert(1)</script>[i]")["answer"]
    assert told["faults"]
    name = "a" * 150
    told = client.ask("analyse", text=f"{name}[i] = X[i]")["answer"]
    assert len(told["graph"]["value"]) < 10_000


def test_a_plan_links_its_lines_with_statements(client: Client) -> None:
    text = "Z[i] += W[i,j] * x[j]\nY[i] = tanh(Z[i])\nloss += Y[i] ** 2"
    told = client.ask("plan", text=text, sizes={"i": 30, "j": 40})["answer"]
    assert told["sizes"] == {"i": 30, "j": 40}
    lines = told["source"].splitlines()
    linked = {}
    for part in told["parts"]:
        assert lines[part["first"] - 1].startswith("def step")
        assert lines[part["last"] - 1].startswith("    ")
        linked |= {("forward", n): part for n in part["statements"]} | {("back", n): part for n in part["adjoints"]}
    assert {("forward", 1), ("forward", 2), ("forward", 3)} < set(linked)
    body = "\n".join(lines[linked["forward", 2]["first"] : linked["forward", 2]["last"]])
    assert "tanh" in body
    assert len([key for key in linked if key[0] == "back"]) == 4
    assert told["operations"] > 0
    assert told["roofline"].startswith("<svg")


def test_a_run_gives_heat_maps_and_a_check_a_verdict(client: Client) -> None:
    told = client.ask("run", text=MATMUL, sizes={"i": 100, "j": 3, "k": 4})["answer"]
    shapes = {tensor["name"]: tuple(tensor["shape"]) for tensor in told["tensors"]}
    assert shapes == {"A": (100, 4), "B": (4, 3), "Y": (100, 3), "A.grad": (100, 4), "B.grad": (4, 3)}
    cells = next(tensor["cells"] for tensor in told["tensors"] if tensor["name"] == "Y")
    assert [len(cells), len(cells[0]), len(cells[0][0])] == [1, 34, 3]
    check = client.ask("check", text=MATMUL, sizes={"i": 100, "j": 3, "k": 4})["answer"]
    assert check["passed"]
    assert check["sizes"] == {"i": 6, "j": 3, "k": 4}


def test_a_gradient_that_is_wrong_is_called_so(client: Client) -> None:
    """`stop` hides a part of the derivative, which central differences see."""
    told = client.ask("check", text="loss += x[i] * stop(x[i])")["answer"]
    assert not told["passed"]
    assert "central differences" in told["text"]


def test_what_has_no_derivative_says_so(client: Client) -> None:
    text = "k[i] argmax= X[i,j]"
    told = client.ask("analyse", text=text)["answer"]
    assert told["faults"] == []
    assert told["explanation"]["refused"] == "no input has a derivative here"
    assert "no input has a derivative" in client.ask("check", text=text)["faults"][0]["message"]


def test_an_update_has_a_plan_and_runs_without_a_gradient(client: Client) -> None:
    text = "W[i] = W[i] - rate * g[i]"
    assert "updated in place" in client.ask("analyse", text=text)["answer"]["explanation"]["refused"]
    assert len(client.ask("plan", text=text)["answer"]["rows"]) == 1
    kinds = [tensor["kind"] for tensor in client.ask("run", text=text)["answer"]["tensors"]]
    assert "gradient" not in kinds


def test_static_integers_have_sliders_too_even_if_their_defaults_do_not_do(client: Client) -> None:
    text = "def area(X[w], width: int = 0) -> Y[j]:\n    size(j) = width - 1\n    Y[j] += X[w] * j\n"
    sliders = client.ask("analyse", text=text)["answer"]["sliders"]
    assert sliders["value"] == {"width": 0, "w": 8}


def test_values_that_are_no_numbers_are_counted(client: Client) -> None:
    told = client.ask("run", text="Y[i] = log(X[i] - 2)\nZ = 1 / size(Y, 0)", sizes={"i": 4})
    tensor = next(t for t in told["answer"]["tensors"] if t["name"] == "Y")
    assert (tensor["strange"], tensor["cells"]) == (4, [[[None] * 4]])


def test_arrays_that_no_machine_has_are_refused_with_words(client: Client) -> None:
    text = "size(a) = 100000\nsize(b) = 100000\nsize(c) = 100000\nY[a,b,c] = a + b + c + 0 * x"
    (fault,) = client.ask("run", text=text)["faults"]
    assert "GB" in fault["message"] or "memory" in fault["message"]


# -- children


def long_text(count: int) -> str:
    """A text that takes seconds to read."""
    return "\n".join(["y0[i] = x[i]", *(f"y{k}[i] = tanh(y{k - 1}[i] * {k}.5 + x[i])" for k in range(1, count))])


def job(text: str, kind: str = "analyse", **more: Any) -> dict[str, Any]:
    return {"job": kind, "text": text, "derivative": "", **more}


def test_a_text_that_takes_too_long_ends_a_child_and_not_the_server(client: Client) -> None:
    playground = client.playground
    usual, restarts = playground.limits, playground.reader.restarts
    playground.limits = replace(usual, reading=0.3)
    told = client.ask("analyse", text=long_text(4000))
    playground.limits = usual
    assert told == {"stopped": "time", "seconds": 0.3, "memory": usual.reading_memory}
    assert client.ask("analyse", text=MATMUL)["answer"]["faults"] == []
    assert playground.reader.restarts == restarts + 1


def test_a_child_that_needs_too_much_memory_ends_and_another_goes_on() -> None:
    text = "size(a) = 20000\nsize(b) = 6500\nY[a,b] = (a + b) * x"  # 1.04 GB

    async def session() -> None:
        worker = Worker(GIGABYTE, "text")
        try:
            told = await worker.ask(job(text, "check", sizes={}, seed=0), 60)
            assert told["stopped"] == "memory"
            assert worker.starting is not None
            child = worker.process
            again = await worker.ask(job(MATMUL), 30)
            assert again["answer"]["faults"] == []
            assert worker.process is not child
        finally:
            await worker.close()

    asyncio.run(session())


def test_a_child_that_was_killed_is_replaced() -> None:
    """And few may wait for one."""

    async def session() -> None:
        worker = Worker(4 * GIGABYTE, "text", waiting=1)
        try:
            await worker.start()
            assert worker.process is not None
            asking = asyncio.create_task(worker.ask(job(long_text(4000)), 60))
            await asyncio.sleep(0.1)
            with pytest.raises(Busy):
                await worker.ask(job(MATMUL), 30)
            os.kill(worker.process.pid, signal.SIGKILL)
            assert (await asking)["stopped"] == "ended"
            assert (await worker.ask(job(MATMUL), 30))["answer"]["faults"] == []
        finally:
            await worker.close()

    asyncio.run(session())


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_a_child_that_does_not_start_is_tried_again(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    async def session() -> None:
        worker = Worker(4 * GIGABYTE, "text")
        try:
            with monkeypatch.context() as changed:
                changed.setattr(sys, "executable", program)
                worker.start_soon()
                assert (await worker.ask(job(MATMUL), 30))["stopped"] == "start"
                assert (await worker.ask(job(MATMUL), 30))["stopped"] == "start"
                worker.start_soon()
                await asyncio.wait([worker.starting])  # type: ignore[list-item]  # it is there
            assert (await worker.ask(job(MATMUL), 30))["answer"]["faults"] == []
            await worker.stop()
            with monkeypatch.context() as changed:
                changed.setattr(sys, "executable", program)
                worker.start_soon()
                await asyncio.wait([worker.starting])  # type: ignore[list-item]  # it is there
        finally:
            await worker.close()

    asyncio.run(session())


def test_a_job_that_is_given_up_while_its_child_starts_leaves_no_answer_behind() -> None:
    async def session() -> None:
        worker = Worker(4 * GIGABYTE, "text")
        try:
            worker.start_soon()
            asking = asyncio.create_task(worker.ask(job(MATMUL), 30))
            while worker.process is None:
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert "answer" in await worker.ask(job(MATMUL), 30)
        finally:
            await worker.close()

    asyncio.run(session())


def test_a_child_ends_when_its_parent_does() -> None:
    """Its input ends; and if it is at work then, it looks for its parent itself."""
    command = [sys.executable, "-m", "tensorswap.playground.child", str(4 * GIGABYTE), "text"]
    lines = json.dumps({**job(MATMUL), "seconds": 30}) + "\n"
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60, check=True)
    ready, answer = map(json.loads, done.stdout.splitlines())
    assert ready["ready"]
    assert answer["answer"]["faults"] == []


# -- links and the command


@pytest.mark.parametrize("text", ["", MATMUL, "# ä 𝒳 ' \" <>&\nY[i] = X[i]\n", long_text(300)])
def test_a_link_carries_a_program(text: str) -> None:
    link = f"http://127.0.0.1:8421/#{fragment(text, {'i': 3})}"
    assert from_link(link) == (text, {"i": 3})
    assert re.fullmatch(r"[\w:/.#=-]+", link)


@pytest.mark.parametrize("link", ["", "#p=", "#p=!", "#p=AAAA", "http://127.0.0.1/", "#p=eJwrSS0uAQAEXQHB", "#p=q1Yq"])
def test_what_is_no_link_is_refused(link: str) -> None:
    with pytest.raises(SwapError, match="the link holds no program"):
        from_link(link)


def test_the_command_takes_statements_files_ops_and_links(tmp_path: Path) -> None:
    (tmp_path / "own.loop").write_text("# own\nY[i] = X[i]\n")
    assert from_link(shown(MATMUL)) == (MATMUL, {})
    assert from_link(shown(str(tmp_path / "own.loop")))[0] == "# own\nY[i] = X[i]\n"
    assert "def softmax" in from_link(shown("softmax"))[0]
    link = f"http://localhost:1/#{fragment(MATMUL, {'i': 2})}"
    assert from_link(shown(link)) == (MATMUL, {"i": 2})
    for wrong in ("nothing_like_it", str(tmp_path / "none.loop"), "http://localhost/#p=AAAA"):
        with pytest.raises(SwapError):
            shown(wrong)


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=f"port {port} cannot be had"):
            playground_client.listening(port, port)
        found = playground_client.listening(None, port)  # another one
        assert found.getsockname()[0] == "127.0.0.1"
        assert found.getsockname()[1] != port
        found.close()


def test_the_command_prints_its_address_and_ends_when_told() -> None:
    command = [sys.executable, "-m", "tensorswap", "playground", "--no-open", "--port", "0", MATMUL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=30)
    found = re.fullmatch(r"playground: (http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}#p=[\w-]+)\n", line)
    assert found is not None, line
    assert from_link(found[1]) == (MATMUL, {})
    assert "Traceback" not in problems


def test_there_are_forty_examples_under_forty_names() -> None:
    assert len(examples()) == 40
    assert len({example.name for example in examples()}) == len({example.title for example in examples()}) == 40
