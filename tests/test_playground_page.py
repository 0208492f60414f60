"""The playground's page in Chromium: typing, mistakes, links between panes, sliders, examples, links, runs, keys.

`make playground-test` installs a browser and runs this file, with all examples. Without a browser it is skipped, and
says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tensorswap.playground.examples import Example, examples
from tensorswap.playground.fragment import fragment, from_link

from .browser import MISSING, chromium, path_of
from .daily import share

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: make playground-test installs it")
playground_client = pytest.importorskip(
    "tests.playground_client", reason="the server needs starlette and uvicorn: pip install 'tensorswap[playground]'"
)

ALL = [pytest.param(example, id=example.name) for example in examples()]
MATMUL = "Y[i,j] += A[i,k] * B[k,j]"
MODEL = "Z[i] += W[i,j] * x[j]\nY[i] = tanh(Z[i])\nloss += Y[i] ** 2\n"


@pytest.fixture(scope="module")
def address(browser: Browser) -> Iterator[str]:
    with playground_client.running() as client:
        yield client.playground.address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        if path_of(driver) is None:
            pytest.skip(MISSING)
        with chromium(driver) as found:
            yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that has loaded; what it complains of is a failure."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    found = context.new_page()
    problems: list[str] = []
    found.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.goto(address)
    found.wait_for_selector("body[data-ready]")
    found.wait_for_selector(".line.backward")
    yield found
    context.close()
    assert problems == []


def write(page: Page, text: str) -> None:
    """In the place of all that is there."""
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def shows(page: Page, text: str) -> None:
    """Waits until the page shows what follows from a text."""
    page.wait_for_function("text => document.body.dataset.shown === text", arg=text)


def planned(page: Page, text: str, **sizes: int) -> None:
    """Waits until the page shows the plan of a text, with these sizes among others."""
    page.wait_for_function(
        """([text, sizes]) => {
            const [planned, chosen] = JSON.parse(document.body.dataset.planned ?? "[]");
            return planned === text && Object.entries(sizes).every(([name, size]) => chosen[name] === size);
        }""",
        arg=[text, sizes],
        timeout=60_000,
    )


def lines(page: Page) -> list[str]:
    return page.locator("#pane-derivative .line code").all_inner_texts()


def test_typing_shows_the_adjoint(page: Page) -> None:
    write(page, "")
    page.keyboard.type("Y[i] = sin(X[i", delay=5)  # the editor closes brackets
    page.keyboard.press("End")
    shows(page, "Y[i] = sin(X[i])")
    assert lines(page) == ["X.grad[i] += Y.grad[i] * cos(X[i])"]
    assert page.locator("#status").inner_text().split() == ["1", "statement", "X[i]", "→", "Y[i]"]


def test_a_mistake_shows_a_caret_under_the_character_and_its_cure(page: Page) -> None:
    write(page, "# wrong\ny[i] = A[i,k] * x[k]")
    told = page.locator(".fault-told")
    told.wait_for()
    caret = page.locator(".fault-told .caret")
    assert caret.inner_text().index("^") == "y[i] = A[i,k]".index("k")
    mark = page.locator(".fault-mark")
    assert mark.inner_text() == "k"
    # the caret is below the character, as the eye sees it
    across = page.evaluate(
        """() => {
            const caret = document.querySelector(".fault-told .caret").firstChild;
            const range = document.createRange();
            range.setStart(caret, caret.length - 1);
            range.setEnd(caret, caret.length);
            const one = range.getBoundingClientRect();
            const other = document.querySelector(".fault-mark").getBoundingClientRect();
            return {across: Math.abs(one.left - other.left), below: one.top - other.bottom};
        }"""
    )
    assert across["across"] < 2
    assert -8 < across["below"] < 12
    assert "write += to sum over k, or add k to y[i]" in told.inner_text()
    assert "1 mistake" in page.locator("#status").inner_text()
    page.click("text=Go to it")
    page.keyboard.press("End")
    write(page, "y[i] += A[i,k] * x[k]")
    shows(page, "y[i] += A[i,k] * x[k]")
    assert page.locator(".fault-told").count() == 0


def test_several_mistakes_are_all_shown(page: Page) -> None:
    write(page, "y[i] = A[i,k]\nz[j] = B[j,l]\n")
    page.wait_for_function("() => document.querySelectorAll('.fault-told').length === 2")
    assert "2 mistakes" in page.locator("#status").inner_text()


def test_script_in_a_text_stays_text(page: Page) -> None:
    write(page, "Y[i] = <img src=x onerror=window.bad=1>[i] # <script>window.bad=1</script>")
    page.locator(".fault-told").wait_for()
    assert page.evaluate("() => window.bad") is None
    assert page.locator(".fault-told img, .fault-told script").count() == 0


def test_tangent_and_second_order_on_demand(page: Page) -> None:
    text = "loss += x[i] ** 3"
    write(page, text)
    shows(page, text)
    page.click("#tab-tangent")
    page.wait_for_function("() => document.querySelector('.line code').textContent.startsWith('loss.dot')")
    page.click("#tab-second")
    page.wait_for_function("() => document.querySelector('.line code').textContent.includes('x.grad.dot')")
    assert lines(page) == ["x.grad.dot[i] += 6 * x[i] * x.dot[i]"]


def test_pointing_at_a_statement_marks_its_adjoints_and_its_lines(page: Page) -> None:
    write(page, MODEL)
    shows(page, MODEL)
    page.click("#tab-source")
    planned(page, MODEL)
    page.locator("h1").click()
    page.hover(".cm-line >> nth=1")
    page.wait_for_selector(".cm-line.linked-forward")
    assert page.locator(".cm-line.linked-forward").all_inner_texts() == ["Y[i] = tanh(Z[i])"]
    marked = page.locator(".line.linked-backward code").all_inner_texts()
    assert marked == ["Z.grad[i] += Y.grad[i] * (1 - Y[i] * Y[i])"]
    assert "tanh" in page.locator("#pane-source .part.linked-forward").inner_text()
    assert page.locator("#pane-source .part.linked-backward").count() == 1
    linked = page.locator(".flow.linked").evaluate_all("all => all.map(one => one.dataset.source + one.dataset.target)")
    assert linked == ["ZY"]


def test_pointing_at_an_adjoint_marks_its_statement_and_says_why(page: Page) -> None:
    write(page, MODEL)
    shows(page, MODEL)
    page.hover(".line:has-text('W.grad')")
    page.wait_for_selector(".cm-line.linked-forward")
    assert page.locator(".cm-line.linked-forward").all_inner_texts() == ["Z[i] += W[i,j] * x[j]"]
    assert "change places" in page.locator("#why").inner_text()
    linked = page.locator(".flow.linked").evaluate_all("all => all.map(one => one.dataset.source + one.dataset.target)")
    assert linked == ["WZ"]


def test_lines_that_do_not_change_stay_while_one_types(page: Page) -> None:
    write(page, MODEL)
    shows(page, MODEL)
    page.hover(".line:has-text('W.grad')")
    page.wait_for_selector(".line.linked-backward")
    page.evaluate("() => { for (const row of document.querySelectorAll('.line')) row.kept = true; }")
    page.keyboard.press("Control+End")
    page.keyboard.type("more = 1.")
    shows(page, MODEL + "more = 1.")
    page.keyboard.type("5")
    shows(page, MODEL + "more = 1.5")
    assert page.locator(".line:has-text('W.grad')").evaluate("row => row.kept")
    marked = page.locator(".line.linked-backward code").all_inner_texts()  # the pointer has not moved
    assert [line.partition("[")[0] for line in marked] == ["W.grad"]
    page.evaluate("() => { document.querySelector('.dataflow').kept = true; }")
    page.keyboard.type("5")
    shows(page, MODEL + "more = 1.55")
    assert page.evaluate("() => document.querySelector('.dataflow').kept")
    write(page, MODEL.replace("Y", "Q"))  # and those that do change are new
    shows(page, MODEL.replace("Y", "Q"))
    assert not any("Y" in line for line in lines(page))
    assert page.locator(".dataflow [data-tensor=Q]").count() == 1


def test_the_source_is_drawn_when_its_tab_is_chosen(page: Page) -> None:
    write(page, MODEL)
    planned(page, MODEL)
    assert page.locator("#pane-source .row").count() == 0
    page.click("#tab-source")
    assert "tanh" in page.locator("#pane-source").inner_text()
    page.click("#tab-plan")
    write(page, MATMUL)
    planned(page, MATMUL)
    page.click("#tab-source")
    assert "tanh" not in page.locator("#pane-source").inner_text()
    page.click("#tab-plan")
    write(page, MODEL)
    planned(page, MODEL)
    page.fill("#number-i", "-3")  # there is no such plan, and no source of the one before
    planned(page, MODEL, i=-3)
    page.click("#tab-source")
    assert page.locator("#pane-source .row").count() == 0
    assert page.locator("#pane-source .refused").count() == 1


def test_a_slider_changes_the_plan(page: Page) -> None:
    write(page, MATMUL)
    planned(page, MATMUL)

    def operations() -> str:
        return page.locator(".facts dd").first.inner_text()

    before = operations()
    page.focus("#size-i")
    page.keyboard.press("End")
    planned(page, MATMUL, i=512)
    assert operations() != before
    assert page.input_value("#number-i") == "512"
    page.fill("#number-k", "33")
    planned(page, MATMUL, i=512, k=33)
    write(page, MATMUL + " * 2")  # a size stays when the text changes
    shows(page, MATMUL + " * 2")
    assert page.input_value("#number-k") == "33"


def test_a_run_shows_heat_maps_and_the_check(page: Page) -> None:
    write(page, MODEL)
    shows(page, MODEL)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".verdict .passed", timeout=120_000)
    assert page.locator("#tab-values").get_attribute("aria-selected") == "true"
    assert page.locator(".tile .name").all_inner_texts() == ["loss", "W.grad", "x.grad", "W", "x"]
    assert page.locator(".tile canvas").count() == 4
    drawn = page.locator(".tile canvas").first.evaluate(
        "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    )
    assert drawn > 5  # colours


def test_the_check_alone(page: Page) -> None:
    write(page, "loss += x[i] * stop(x[i])")
    shows(page, "loss += x[i] * stop(x[i])")
    page.click("#check-button")
    page.wait_for_selector(".verdict .failed", timeout=60_000)
    assert "central differences" in page.locator(".verdict").inner_text()


def test_work_that_takes_too_long_is_stopped_and_the_page_goes_on(page: Page) -> None:
    bomb = "size(a) = 1000000000000\nY += a * x\n"
    write(page, bomb)
    shows(page, bomb)
    write(page, MATMUL)
    shows(page, MATMUL)  # the plan of the other one may still be at work: reading does not wait for it


def test_examples_can_be_searched_and_chosen_by_keyboard(page: Page) -> None:
    page.keyboard.press("Alt+e")
    page.wait_for_selector("dialog#examples[open]")
    assert page.locator(".example").count() == 40
    page.keyboard.type("kalman")
    assert page.locator(".example").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_function("() => (document.body.dataset.shown ?? '').startsWith('# Kalman')")
    assert page.input_value("#number-t") == "8"
    assert page.locator("dialog[open]").count() == 0


def test_a_link_carries_the_program_and_its_sizes(page: Page, browser: Browser, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(page, MODEL)
    shows(page, MODEL)
    page.fill("#number-i", "21")
    page.click("#link-button")
    page.wait_for_selector("#toast.shown")
    link = page.evaluate("() => navigator.clipboard.readText()")
    text, sizes = from_link(link)
    assert (text, sizes["i"]) == (MODEL, 21)
    assert "token" not in link
    other = browser.new_page()
    other.goto(f"{address}#{link.partition('#')[2]}")
    shows(other, MODEL)
    assert other.input_value("#number-i") == "21"
    other.close()


def test_a_link_that_python_wrote_opens_and_a_broken_one_is_told(browser: Browser, address: str) -> None:
    text = "# ä 𝒳\nY[i] = X[i] * 2\n"
    page = browser.new_page()
    page.goto(f"{address}#{fragment(text, {'i': 9})}")
    shows(page, text)
    page.close()
    page = browser.new_page()
    page.goto(f"{address}#p=nonsense")
    page.wait_for_selector("#toast.shown")
    page.wait_for_selector(".line.backward")  # with the first example
    page.close()


def test_the_address_keeps_the_program(page: Page) -> None:
    write(page, MODEL)
    shows(page, MODEL)
    page.wait_for_function("() => location.hash.length > 40")
    page.wait_for_timeout(600)
    page.reload()
    shows(page, MODEL)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_dark_and_light(browser: Browser, address: str, scheme: Any) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector("body[data-ready]")

    def brightness() -> float:
        found = page.evaluate("() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        return sum(found[:3]) / 3

    before = brightness()
    assert (before < 60) == (scheme == "dark")
    other = "light" if scheme == "dark" else "dark"
    for asked in (other, scheme):  # it follows the system until somebody chooses, as soon as the browser tells it
        page.emulate_media(color_scheme=asked)
        page.wait_for_function("asked => document.documentElement.dataset.theme === asked", arg=asked)
        assert (brightness() < 60) == (asked == "dark")
    page.click("#theme-button")
    assert (brightness() < 60) != (scheme == "dark")
    page.reload()
    assert (brightness() < 60) != (scheme == "dark")  # it is kept
    page.close()


def test_a_phone_scrolls_in_one_direction_only(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address)
    page.wait_for_selector("#pane-plan .roofline", state="attached")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    tops = [page.locator(f".{name}").bounding_box() for name in ("program", "sizes", "derivative", "graph", "result")]
    places = [box["y"] for box in tops if box is not None]
    assert places == sorted(places)
    assert len(places) == 5
    page.close()


def test_keys_reach_everything(page: Page) -> None:
    page.keyboard.press("Alt+2")
    assert page.evaluate("() => document.activeElement.id") == "tab-source"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.id") == "tab-values"
    page.focus("#tab-adjoint")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    first = page.evaluate("() => document.activeElement.textContent")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.className").startswith("line")
    assert page.evaluate("() => document.activeElement.textContent") != first
    page.click(".cm-content")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("() => !document.activeElement.closest('#editor')")


def test_everything_has_a_name_for_those_who_do_not_see_it(page: Page) -> None:
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, [role=tab], [role=tabpanel], canvas, svg[role=img]")]
            .filter((one) => !one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby"))
            .filter((one) => !one.textContent.trim())
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []


def test_the_server_is_missed(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector(".line.backward")
    page.route("**/api/analyse", lambda route: route.abort())
    write(page, MATMUL)
    page.locator(".fault-told").wait_for()
    assert "does not answer" in page.locator("#status").inner_text()
    page.unroute("**/api/analyse")
    write(page, MODEL)
    shows(page, MODEL)
    page.close()


@pytest.mark.parametrize("example", share(ALL, 20))
def test_an_example_pasted_into_the_page_passes_the_gradient_check(page: Page, example: Example) -> None:
    write(page, example.text)
    shows(page, example.text)
    assert page.locator(".line.backward").count() > 0
    page.click("#run-button")
    page.wait_for_selector(".verdict .passed", timeout=120_000)
    page.wait_for_selector(".tile.gradient")
    assert page.locator("#pane-values .refused").count() == 0
