// The behaviour of the page in the browser. Its inputs are its state: any change of one sends one request to the
// server, and the answer is drawn (picture.js). Sliders and fields have equal values (sliders.js). The address has
// the state.
(function () {
  "use strict";
  const { toText, toPlace } = window.explorer_sliders, picture = window.explorer_picture;
  const element = (id) => document.getElementById(id);
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
  const root = document.documentElement;

  const PAUSE = 400; // milliseconds after the last key until a typed value is sent
  const STEADY = 200; // milliseconds after the last change until the address is updated
  const FILM = 450; // milliseconds for which the animation shows a step
  const NARROW = 700; // largest width in pixels of a window without room for clusters beside the curve

  let table = null; // the controls, from layout.py; null until the page is ready
  let pinned = "", simulated = null;

  // the state of the page

  function texts() {
    const found = {};
    for (const name of table.fields) found[name] = element(name).value;
    for (const name of table.switches) found[name] = element(name).checked ? "yes" : "";
    for (const name of table.choices) found[name] = chosen(name);
    return found;
  }

  const written = (values) => JSON.stringify(Object.entries(values).sort());
  const dark = () => root.dataset.theme === "dark";

  function state() {
    const step = element("t"), last = Number(step.value) >= Number(step.max);
    const now = {
      texts: texts(), view: chosen("view"), t: last ? -1 : Number(step.value), pin: pinned, dark: dark(),
      size: 0.875 * parseFloat(getComputedStyle(root).fontSize), narrow: window.innerWidth < NARROW,
    };
    if (simulated && written(simulated.texts) === written(now.texts)) now.simulated = simulated;
    return now;
  }

  function query(values, more) {
    return new URLSearchParams({ ...values, ...more }).toString();
  }

  function remember() {
    const { texts: values, view, t, pin } = state();
    const more = { view: view, ...(t >= 0 && { t: t }), ...(pin && { pin: pin }) };
    window.history.replaceState(null, "", "?" + query(values, more));
  }

  // Returns a debounced function: it runs once its calls have paused.
  function settled(act, milliseconds) {
    let timer;
    return () => { clearTimeout(timer); timer = setTimeout(act, milliseconds); };
  }
  const rememberSoon = settled(remember, STEADY), askSoon = settled(ask, PAUSE);

  // requests to the server

  const page = Math.random().toString(36).slice(2) + Date.now().toString(36);
  let number = 0, shown = 0, sent = "", good = null;

  async function ask() {
    const now = state(), body = JSON.stringify(now);
    if (body === sent) return;
    sent = body;
    const mine = ++number;
    try {
      const response = await fetch("/answer", {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...now, page: page, number: mine }),
      });
      const answer = response.status === 204 ? null : await response.json();
      if (answer === null || mine < shown) return; // a newer request has replaced this one
      shown = mine;
      await picture.show(answer);
      if (!answer.fault) {
        good = now.texts;
        if (mine === number) fitSteps(now, answer);
      }
    } catch (error) {
      if (mine !== number) return;
      sent = "";
      picture.fault("The server does not answer: is `selftrain explore` still running?", null);
    }
    const shape = now.texts.shape.trim() !== "", three = now.texts.classes.trim() !== "";
    const unused = { delta: shape, delta_u: shape || three, rho: three, rho_u: three };
    for (const [name, is] of Object.entries(unused)) {
      element(name).closest(".control").classList.toggle("unused", is);
    }
    rememberSoon();
  }

  function fitSteps(asked, answer) {
    const step = element("t");
    step.max = Math.max(1, answer.steps);
    step.value = asked.t < 0 ? step.max : answer.t;
  }

  // events of the inputs

  function slid(control) {
    const slider = element(control.name + "-slider");
    element(control.name).value = toText(Number(slider.value), control, table.places);
    slider.setAttribute("aria-valuetext", element(control.name).value);
    ask();
  }

  function placeSlider(control) {
    const slider = element(control.name + "-slider"), text = element(control.name).value;
    const place = toPlace(text, control, table.places);
    if (place !== null) slider.value = place;
    slider.setAttribute("aria-valuetext", text || "empty");
  }

  document.addEventListener("input", ({ target }) => {
    if (!table) return;
    const control = table.controls.find((one) => target.id === one.name || target.id === one.name + "-slider");
    if (control && target.type === "range") return slid(control);
    if (control) placeSlider(control);
    if (table.fields.includes(target.id)) return askSoon();
    if (target.name === "quantity") return set("mapped", target.value);
    ask();
  });

  // On Enter, or when a field loses focus, send at once.
  document.addEventListener("change", ({ target }) => { if (table && table.fields.includes(target.id)) ask(); });

  window.addEventListener("resize", () => { if (table) ask(); });

  let film = null;
  function play() {
    film = film ? clearInterval(film) : setInterval(nextStep, FILM);
    element("play").textContent = film ? "Pause" : "Play";
  }

  function nextStep() {
    const step = element("t"), now = Number(step.value);
    step.value = now >= Number(step.max) ? 0 : now + 1;
    ask();
  }

  function set(store, data) { window.dash_clientside.set_props(store, { data: data }); }

  function turn(theme) {
    root.dataset.theme = theme;
    set("dark", dark());
  }

  const buttons = {
    "play": play,
    "pin-it": () => { pinned = good ? query(good) : pinned; ask(); },
    "unpin": () => { pinned = ""; ask(); },
    "theme": () => { turn(dark() ? "light" : "dark"); ask(); },
    "save-figure": picture.save,
  };
  document.addEventListener("click", ({ target }) => {
    if (!table || target.tagName !== "BUTTON") return;
    if (target.id in buttons) return buttons[target.id]();
    const preset = table.presets[target.id.replace("preset-", "")];
    if (preset) restore(preset);
  });

  // functions that Dash calls

  const none = () => window.dash_clientside.no_update;

  function restore(saved, given) {
    if (given && !table) {
      table = given;
      turn(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    }
    if (!saved) return none();
    if (saved.fault) return picture.say(saved.fault, null), none();
    for (const name of table.fields) element(name).value = saved.texts[name];
    for (const name of table.switches) element(name).checked = saved.texts[name] !== "";
    for (const name of table.choices) choose(name, saved.texts[name]);
    table.controls.forEach(placeSlider);
    if (saved.view) choose("view", saved.view);
    if ("pin" in saved) pinned = saved.pin;
    const step = element("t");
    step.max = table.mostSteps;
    step.value = saved.t >= 0 ? saved.t : table.mostSteps;
    element("about").textContent = saved.about || "";
    ask();
    return none();
  }

  function choose(name, value) {
    const one = document.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`);
    if (one) one.checked = true;
  }

  // Data for the server when a button with a Dash callback is clicked.
  function asked(...clicks) {
    const { triggered_id } = window.dash_clientside.callback_context;
    const more = Object.fromEntries(["features", "seeds", "target"].map((name) => [name, element(name).value]));
    return { button: triggered_id, clicks: clicks, state: state(), ...more };
  }

  let taken = null; // the job whose result has been written to the controls
  function follow(job) {
    if (!job) return [none(), none()];
    if (job.simulated) { simulated = job.simulated; ask(); }
    if (job.status === "done" && job.texts && job.id !== taken) {
      taken = job.id;
      restore({ texts: job.texts, t: -1 });
    }
    return [job.progress, ["done", "failed", "cancelled"].includes(job.status)];
  }

  function own(job) {
    if (!job || job.kind !== "data") return [none(), none(), none()];
    const said = job.answer ? job.answer.join("\n") : job.progress;
    if (!job.own) return [said, none(), { display: "none" }];
    return [said, job.own, { display: "block", height: "22rem" }];
  }

  function named(name) { return name || ""; }

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explorer: { restore, asked, follow, own, named },
  });
})();
