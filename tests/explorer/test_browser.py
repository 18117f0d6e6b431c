"""The page in a real browser: every control, view and button, links, downloads, accessibility,
hostile input.
"""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from urllib.parse import parse_qs, quote, urlparse

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks.page.browser import (
    click,
    curve,
    resize,
    serving,
    show,
    slide,
    text,
    type_into,
    value_of,
    visit,
    wait,
)
from benchmarks.page.explorer import grown, soak
from selftrain import Clusters, Problem, Recipe, solve, sweep
from selftrain.explorer.page_state import VIEWS, PageState
from selftrain.explorer.presets import PRESETS

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SHOTS = ROOT / "out" / "explorer"


def shows(browser, run, name="this run"):
    """Wait until the curve of the page is the error of a run."""

    def agrees():
        values = curve(browser, name)
        return (
            values is not None
            and len(values) == len(run.error)
            and np.allclose(np.array(values, dtype=float), run.error, rtol=1e-9)
        )

    return wait(browser, agrees)


def shot(browser, name):
    SHOTS.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(SHOTS / f"{name}.png"))


def stale(browser):
    """Return whether the figure is greyed, because it belongs to earlier settings."""
    return "stale" in browser.find_element(By.ID, "chart").get_attribute("class").split()


@pytest.fixture(scope="module")
def headline():
    state = PRESETS["headline"].state()
    return solve(state.problem, state.recipe)


def test_a_first_visit_explains_itself_and_shows_the_headline(browser, address, headline):
    visit(browser, address)
    shows(browser, headline)
    other = PageState.from_query(PRESETS["headline"].state().pin)
    shows(browser, solve(other.problem, other.recipe), "pinned run")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#intro p")) == 3
    assert f"{headline.error[-1]:.4f}" in text(browser, "sentences")
    shot(browser, "headline")


def test_sliders_and_typed_values_move_the_curve_to_the_solvers_values(browser, address):
    visit(browser, address)
    slide(browser, "rho", 700)
    wait(browser, lambda: value_of(browser, "rho") != "0.2")
    rho = float(value_of(browser, "rho"))
    assert rho == pytest.approx(0.01 + 0.98 * 0.7, abs=1e-3)
    state = PRESETS["headline"].state()
    shows(browser, solve(state.problem.replace(rho=rho), state.recipe))
    slide(browser, "lambda_u", 400)
    wait(browser, lambda: value_of(browser, "lambda_u") != "0.00372")
    ridge = float(value_of(browser, "lambda_u"))
    assert ridge == pytest.approx(1e-6 * 1e7**0.4, rel=0.01)
    shows(browser, solve(state.problem.replace(rho=rho), state.recipe.replace(lambda_u=ridge)))
    type_into(browser, "rho", "0.35")
    recipe = state.recipe.replace(lambda_u=ridge)
    shows(browser, solve(state.problem.replace(rho=0.35), recipe))
    position = browser.find_element(By.ID, "rho-slider").get_attribute("value")
    assert int(position) == round(1000 * (0.35 - 0.01) / 0.98)


@pytest.mark.parametrize("name", ["selection", "collapse", "label-noise", "three-classes"])
def test_presets_are_chosen_from_the_list(browser, address, name):
    visit(browser, address)
    state = PRESETS[name].state()
    browser.execute_script("document.getElementById('presets').open = true")
    click(browser, f"preset-{name}")
    shows(browser, solve(state.problem, state.recipe))
    if name == "collapse":
        assert "collapse" in text(browser, "sentences")
    shot(browser, f"preset-{name}")


def test_three_classes_show_proportions_scores_and_what_they_do_not_use(browser, address):
    state = PRESETS["three-classes"].state()
    run = solve(state.problem, state.recipe)
    visit(browser, address, "?" + state.query())
    shows(browser, run)
    predicted = np.array([curve(browser, f"class {k}") for k in range(3)], dtype=float)
    np.testing.assert_allclose(predicted.T, run.predicted_shares, rtol=1e-6)
    assert f"{1 - run.class_errors[-1, 2]:.5g}" in text(browser, "numbers")
    unused = "return document.getElementById('rho').closest('.control').className"
    wait(browser, lambda: "unused" in browser.execute_script(unused))
    show(browser, "laws")
    wait(browser, lambda: "needs two classes" in text(browser, "sentences"))
    type_into(browser, "classes", "0.5, 0.6, 0.1")
    wait(browser, lambda: "must be three numbers" in text(browser, "classes-fault"))


OUT_OF_SIGHT = """
const plot = document.getElementById("chart"), layout = plot._fullLayout;
const inside = (values, axis) => values.every((value) => value === null ||
  (axis.d2l(value) >= Math.min(...axis.range) && axis.d2l(value) <= Math.max(...axis.range)));
const aside = ["separating", "earlier"];
return plot._fullData.filter((trace) => !aside.includes(trace.name.split(" ")[0]))
  .filter((trace) => !inside(Array.from(trace.x), layout["xaxis" + trace.xaxis.slice(1)])
                  || !inside(Array.from(trace.y), layout["yaxis" + trace.yaxis.slice(1)]))
  .map((trace) => trace.name);
"""


def test_every_view_draws(browser, address):
    """Also after another view, whose axes it must not keep."""
    visit(browser, address, "?" + PRESETS["macroscopic"].state().query())
    drawn = (
        "const p = document.getElementById('chart'); return p.data.length && p.layout.uirevision"
    )
    for view in VIEWS:
        show(browser, view)
        wait(browser, lambda v=view: browser.execute_script(drawn) == v)
        wait(browser, lambda v=view: f"view={v}" in browser.current_url)
        assert browser.execute_script(OUT_OF_SIGHT) == []
        shot(browser, f"view-{view}")


def test_a_link_reproduces_the_view(browser, address):
    query = "?rho=0.3&steps=8&annealing=0&fix_bias=&lambda_u=0.02&view=direction&t=3"
    visit(browser, address, query)
    run = solve(Problem(0.5, 2.0, 0.3, 0.5625, steps=8), Recipe(lambda_l=0.1, lambda_u=0.02))
    wait(browser, lambda: text(browser, "t-shown") == "3")
    assert f"{run.cosine[3]:.5g}" in text(browser, "numbers")
    wait(browser, lambda: "steps=8" in browser.current_url)
    link = browser.current_url
    held = parse_qs(urlparse(link).query)
    assert (held["view"], held["t"], held["rho"]) == (["direction"], ["3"], ["0.3"])
    visit(browser, address, "?" + urlparse(link).query)
    wait(browser, lambda: text(browser, "t-shown") == "3")
    assert f"{run.cosine[3]:.5g}" in text(browser, "numbers")


def test_pin_and_unpin(browser, address, headline):
    visit(browser, address)
    shows(browser, headline)
    click(browser, "pin-it")
    shows(browser, headline, "pinned run")
    type_into(browser, "annealing", "0.05")
    state = PRESETS["headline"].state()
    shows(browser, solve(state.problem, state.recipe.replace(annealing=0.05)))
    shows(browser, headline, "pinned run")
    click(browser, "unpin")
    wait(browser, lambda: curve(browser, "pinned run") is None)


def test_simulate_adds_points_and_cancel_stops(browser, address):
    visit(browser, address, "?steps=4&annealing=0&fix_bias=&lambda_u=0.05")
    type_into(browser, "features", "256")
    type_into(browser, "seeds", "3")
    click(browser, "simulate")
    wait(browser, lambda: "3 systems" in text(browser, "progress"), 240)
    points = wait(browser, lambda: curve(browser, "simulated"))
    assert len(points) == 3 * 5
    type_into(browser, "features", "131072")
    type_into(browser, "seeds", "32")
    click(browser, "simulate")
    wait(browser, lambda: "simulating" in text(browser, "progress"), 120)
    click(browser, "cancel")
    wait(browser, lambda: "cancelled" in text(browser, "progress"))


def test_a_search_sets_the_controls(browser, address):
    visit(browser, address, "?rho=0.5&steps=3&annealing=0&fix_bias=")
    click(browser, "best-constants")
    wait(
        browser,
        lambda: "best error" in text(browser, "progress") and "runs." in text(browser, "progress"),
        120,
    )
    wait(browser, lambda: value_of(browser, "lambda_u") != "0.00372")
    problem = Problem(0.5, 2.0, 0.5, 0.5625, steps=3)
    recipe = Recipe(float(value_of(browser, "lambda_l")), float(value_of(browser, "lambda_u")))
    shows(browser, solve(problem, recipe))


def test_downloads_agree_with_the_api(browser, address, headline, downloads):
    visit(browser, address)
    shows(browser, headline)
    for button, name in (
        ("save-data", "selftrain-run.csv"),
        ("save-python", "selftrain-run.py"),
        ("save-figure", "selftrain-run.svg"),
        ("save-settings", "selftrain-run.json"),
    ):
        (downloads / name).unlink(missing_ok=True)
        click(browser, button)
        wait(browser, (downloads / name).is_file)
    rows = list(csv.DictReader((downloads / "selftrain-run.csv").read_text().splitlines()))
    np.testing.assert_allclose([float(row["error"]) for row in rows], headline.error, rtol=1e-12)
    names: dict[str, object] = {}
    exec((downloads / "selftrain-run.py").read_text(), names)
    assert np.array_equal(names["run"].error, headline.error)
    assert "<svg" in (downloads / "selftrain-run.svg").read_text()[:200]
    settings = json.loads((downloads / "selftrain-run.json").read_text())
    assert Problem.from_dict(settings["problem"]) == headline.problem
    assert Recipe.from_dict(settings["recipe"]) == headline.recipe


def test_a_shape_takes_the_place_of_the_noise(browser, address):
    clusters = Clusters(mean=[1.0, 0.3], covariance=[0.5, 2.0])
    problem = Problem(0.5, 2.0, 0.2, clusters=clusters, steps=4)
    run = solve(problem, Recipe(0.1, 0.05))  # compiles once what the page needs too
    visit(browser, address, "?steps=4&annealing=0&fix_bias=&lambda_u=0.05")
    type_into(browser, "shape", "1:0.5, 0.3:2")
    wait(browser, lambda: curve(browser, "best linear rule") is not None, 120)
    shows(browser, run)
    assert curve(browser, "best linear rule")[0] == clusters.best_rule(0.2).error
    unused = "return document.getElementById('delta').closest('.control').className"
    assert "unused" in browser.execute_script(unused)
    show(browser, "continuum")
    wait(browser, lambda: "known for spheres only" in text(browser, "sentences"))
    type_into(browser, "shape", "1:-2")
    wait(browser, lambda: "variances from 0.0001" in text(browser, "shape-fault"))


def test_a_table_of_the_visitor_gives_a_plan_and_a_curve(browser, address, tmp_path, rows_csv):
    (tmp_path / "rows.csv").write_text(rows_csv)
    visit(browser, address)
    browser.execute_script("document.getElementById('own-data').open = true")
    browser.find_element(By.CSS_SELECTOR, "#upload input[type=file]").send_keys(
        str(tmp_path / "rows.csv")
    )
    wait(browser, lambda: text(browser, "chosen") == "rows.csv")
    type_into(browser, "target", "kind")
    click(browser, "plan-it")
    wait(browser, lambda: "real" in text(browser, "progress"), 240)
    told = text(browser, "plan")
    assert "FewLabelClassifier" in told
    assert "90 % interval" in told
    drawn = "return document.querySelector('#own .js-plotly-plot').data.map((trace) => trace.name)"
    wait(browser, lambda: "real rows, mean" in browser.execute_script(drawn))
    browser.execute_script("document.getElementById('own-data').scrollIntoView()")
    shot(browser, "your-data")
    click(browser, "shape-it")
    wait(browser, lambda: "120 rows along 6 directions" in text(browser, "progress"), 120)
    wait(browser, lambda: value_of(browser, "shape") != "")
    state = (
        PRESETS["headline"]
        .state()
        .with_values({"shape": value_of(browser, "shape"), "rho": value_of(browser, "rho")})
    )
    shows(browser, solve(state.problem, state.recipe))
    shot(browser, "your-shape")


def test_a_click_on_an_opened_sweep_loads_the_point(browser, tmp_path):
    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=4)
    over = {"rho": [0.3, 0.4, 0.5], "lambda_u": [0.02, 0.05, 0.1]}
    sweep(problem, Recipe(0.05), over=over, keep=("error",), workers=0, store=tmp_path / "grid.db")
    with serving(str(tmp_path / "grid.db")) as (place, _, lines):
        visit(browser, place)
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#map .nsewdrag"))
        target = browser.find_element(By.CSS_SELECTOR, "#map .nsewdrag")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
        ActionChains(browser).move_to_element(target).pause(0.5).click().perform()
        shows(browser, solve(problem, Recipe(0.05, 0.05)))
        shot(browser, "sweep")
    assert not [line for line in lines if "Traceback" in line]


def test_bad_values_are_named_beside_their_control(browser, address, headline):
    visit(browser, address)
    shows(browser, headline)
    type_into(browser, "rho", "2")
    wait(browser, lambda: "rho must be" in text(browser, "rho-fault"))
    assert "0.01 to 0.99" in text(browser, "rho-fault")
    assert stale(browser)
    assert not any(text(browser, name) for name in ("sentences", "numbers", "python"))
    type_into(browser, "rho", "0.2")
    wait(browser, lambda: text(browser, "rho-fault") == "")
    shows(browser, headline)
    wait(browser, lambda: not stale(browser))
    assert text(browser, "sentences")


@pytest.mark.parametrize(
    "query",
    [
        "?rho=2",
        "?rho=<script>alert(1)</script>",
        "?steps=99999999",
        "?view=nothing&t=abc",
        "?%00%ff=%00",
        "?pin=" + quote("rho=2&steps=-1"),
        "?" + "a=1&" * 2000,
        "?lambda_u=0.1,0.2",
    ],
    ids=range(8),
)
def test_a_hostile_address_gives_a_page(browser, address, query):
    browser.get("about:blank")
    browser.get(address + query)
    wait(browser, lambda: text(browser, "sentences") or text(browser, "lambda_u-fault"))
    assert "Traceback" not in browser.page_source
    assert not browser.execute_script("return !!window.alerted")


def test_two_tabs_do_not_disturb_each_other(browser, address, headline):
    visit(browser, address)
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    try:
        visit(browser, address, "?rho=0.5")
        state = PRESETS["headline"].state()
        recipe = PageState().recipe
        shows(browser, solve(state.problem.replace(rho=0.5), recipe))
        browser.close()
    finally:
        browser.switch_to.window(first)
    shows(browser, headline)


def test_the_page_asks_no_other_host(browser, address):
    browser.get_log("performance")
    visit(browser, address)
    requested = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            requested.add(urlparse(message["params"]["request"]["url"]))
    hosts = {url.netloc for url in requested if url.scheme in ("http", "https")}
    assert hosts == {urlparse(address).netloc}


def test_the_console_is_quiet(browser, address):
    browser.get_log("browser")
    visit(browser, address)
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []


def test_keyboard_alone_moves_a_slider(browser, address):
    visit(browser, address)
    before = value_of(browser, "rho")
    slider = browser.find_element(By.ID, "rho-slider")
    browser.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    wait(browser, lambda: value_of(browser, "rho") != before)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(browser, address, dark):
    assert AXE.is_file(), "make browser installs axe-core"
    visit(browser, address)
    if dark:
        click(browser, "theme")
        wait(
            browser,
            lambda: (
                browser.execute_script("return document.documentElement.dataset.theme") == "dark"
            ),
        )
        time.sleep(1)
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    serious = [
        (fault["id"], [node["html"][:160] for node in fault["nodes"][:3]])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []
    shot(browser, "dark" if dark else "light")


OUTSIDE = """
return Array.from(document.querySelectorAll("button, input, p, pre, label, .js-plotly-plot"))
  .filter((one) => one.getClientRects().length)
  .filter((one) => { const box = one.getBoundingClientRect();
                     return box.left < 0 || box.right > document.documentElement.clientWidth + 1; })
  .map((one) => one.id || one.textContent);
"""


@pytest.mark.parametrize(
    ("name", "width", "height"),
    [
        ("laptop", 1280, 720),
        ("phone-sideways", 844, 390),
        ("phone", 390, 844),
        ("projector", 1920, 1080),
    ],
)
def test_nothing_is_cut_off(browser, address, name, width, height):
    resize(browser, width, height)
    try:
        visit(browser, address)
        browser.execute_script(
            "for (const d of document.querySelectorAll('details')) d.open = true"
        )
        time.sleep(0.5)
        assert browser.execute_script(OUTSIDE) == []
        visit(browser, address)
        time.sleep(0.5)
        shot(browser, name)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_buttons_and_sentences_are_above_the_fold(browser, address):
    resize(browser, 1280, 800)
    try:
        visit(browser, address)
        for name in ("chart", "play", "best-constants", "best-schedule", "simulate", "sentences"):
            box = browser.find_element(By.ID, name).rect
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 800, name
        assert curve(browser, "separating line") is not None
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


OVERLAPPING = """
const boxes = Array.from(document.querySelectorAll("#chart .legendtext"),
                         (one) => one.getBoundingClientRect());
const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
return boxes.filter((a, i) => a.right > window.innerWidth
                              || boxes.some((b, j) => j > i && over(a, b))).length;
"""


@pytest.mark.parametrize("name", ["headline", "weights-logits", "three-classes"])
def test_on_a_phone_entries_of_the_legend_do_not_overlap(browser, address, name):
    resize(browser, 390, 844)
    try:
        visit(browser, address, "?" + PRESETS[name].state().query())
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#chart .legendtext"))
        assert browser.execute_script(OVERLAPPING) == 0
        shot(browser, f"phone-{name}")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


IN_SIGHT = """
const box = document.getElementById(arguments[0]).getBoundingClientRect();
return box.top >= 0 && box.bottom <= window.innerHeight;
"""


@pytest.mark.parametrize("name", ["alpha_l", "lambda_u"])
def test_on_a_phone_the_picture_stays_while_a_slider_moves(browser, address, name):
    resize(browser, 390, 844)
    try:
        visit(browser, address)
        slider = browser.find_element(By.ID, f"{name}-slider")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
        before = curve(browser)
        slide(browser, name, 600)
        wait(browser, lambda: curve(browser) != before)
        for part in ("chart", f"{name}-slider"):
            assert browser.execute_script(IN_SIGHT, part), part
        assert curve(browser, "separating line") is None
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_play_moves_both_separating_lines(browser, address, headline):
    visit(browser, address)
    shows(browser, headline)
    ends = [curve(browser, f"separating line, {word}") for word in ("t", "pinned")]
    click(browser, "play")
    wait(browser, lambda: text(browser, "t-shown") == "2")
    click(browser, "play")
    moved = [curve(browser, f"separating line, {word}") for word in ("t", "pinned")]
    assert moved[0] != ends[0]
    assert moved[1] != ends[1]


def test_random_acts_leave_the_page_alive_and_small(browser, server, headline):
    """A few seconds of what `python -m benchmarks explorer soak` does for half an hour."""
    address, process = server
    samples = soak(browser, address, process, minutes=0.1, samples=2)
    assert grown(samples).elements < 1.5
    visit(browser, address)
    shows(browser, headline)
