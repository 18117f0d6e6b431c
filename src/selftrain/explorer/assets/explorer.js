// What the page does by itself: sliders and fields follow each other, the state is collected into the
// address, steps play like a film. Numbers come from the server.
(function () {
  "use strict";
  const none = () => window.dash_clientside.no_update;
  const page = Math.random().toString(36).slice(2) + Date.now().toString(36);
  let number = 0;

  function places(control) {
    // With 0 or infinity allowed, one end of a logarithmic slider stands for it.
    return { first: control.zero && control.scale === "log" ? 1 : 0, last: control.infinite ? 1 : 0 };
  }

  function toValue(position, control, steps) {
    const { first, last } = places(control);
    if (first && position <= 0) return "0";
    if (last && position >= steps) return "inf";
    const share = (position - first) / (steps - first - last);
    if (control.scale === "log") {
      const low = Math.log(control.low), high = Math.log(control.high);
      return String(Number(Math.exp(low + share * (high - low)).toPrecision(3)));
    }
    const value = control.low + share * (control.high - control.low);
    return control.scale === "whole" ? String(Math.round(value)) : String(Number(value.toFixed(4)));
  }

  function toPosition(text, control, steps) {
    const { first, last } = places(control);
    const words = String(text).trim();
    if (words === "" || words.includes(",")) return none();
    if (words === "inf") return steps;
    const value = Number(words);
    if (!Number.isFinite(value)) return none();
    if (first && value <= 0) return 0;
    let share;
    if (control.scale === "log") {
      if (value <= 0) return none();
      share = Math.log(value / control.low) / Math.log(control.high / control.low);
    } else {
      share = (value - control.low) / (control.high - control.low);
    }
    const position = Math.round(first + Math.min(1, Math.max(0, share)) * (steps - first - last));
    return position;
  }

  function triggered() {
    const context = window.dash_clientside.callback_context;
    return (context.triggered || []).map((entry) => entry.prop_id.split(".")[0]);
  }

  // What this page itself wrote into a field or a slider: it is no move of the visitor's.
  const written = {}, placed = {};
  function linked(control, text, position, moved, steps) {
    const { set_props } = window.dash_clientside;
    const name = control.name;
    if (moved && position !== placed[name]) {
      delete placed[name];
      written[name] = toValue(position, control, steps);
      if (written[name] !== text) set_props(name, { value: written[name] });
      return written[name];
    }
    if (text !== written[name]) {
      delete written[name];
      const place = toPosition(text, control, steps);
      if (place !== none() && place !== position) {
        placed[name] = place;
        set_props(name + "-slider", { value: place });
      }
    }
    return text === null || text === undefined ? "" : String(text);
  }

  function query(texts, extra) {
    const pairs = new URLSearchParams();
    for (const [name, text] of Object.entries(texts)) pairs.set(name, text);
    for (const [name, text] of Object.entries(extra || {})) pairs.set(name, text);
    return pairs.toString();
  }

  let sent = "";
  function collect() {
    const values = Array.from(arguments);
    const last = values.pop(), table = values.pop();
    const count = table.controls.length, more = table.others.length;
    const asked = triggered();
    const texts = {};
    table.controls.forEach((control, i) => {
      const moved = asked.includes(control.name + "-slider");
      texts[control.name] = linked(control, values[i], Number(values[count + more + i]), moved, table.steps);
    });
    table.others.forEach((name, i) => {
      const value = values[count + i];
      texts[name] = Array.isArray(value) ? value.join("") : value === null || value === undefined ? "" : String(value);
    });
    const [view, t, pin, simulated, dark] = values.slice(2 * count + more);
    const step = Number(t) >= Number(last) ? -1 : Number(t);
    const size = 0.875 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const shown = { texts: texts, view: view, t: step, pin: pin, dark: dark, size: size };
    const same = (one) => JSON.stringify(Object.keys(texts).map((name) => one[name]));
    if (simulated && same(simulated.texts) === same(texts)) shown.simulated = simulated;
    const now = JSON.stringify(shown);
    if (now === sent) return none();
    sent = now;
    for (const name of ["delta", "delta_u"]) {
      document.getElementById(name).closest(".control").classList.toggle("unused", texts.shape.trim() !== "");
    }
    remember(texts, view, step, pin);
    number += 1;
    return Object.assign(shown, { page: page, number: number });
  }

  function remember(texts, view, step, pin) {
    const extra = { view: view };
    if (step >= 0) extra.t = String(step);
    if (pin) extra.pin = pin;
    const address = "?" + query(texts, extra);
    if (address !== window.location.search) window.history.replaceState(null, "", address);
  }

  let named = [];
  function faults(found) {
    const now = Object.keys(found || {});
    for (const name of named) if (!now.includes(name)) window.dash_clientside.set_props(name + "-fault", { children: "" });
    for (const name of now) window.dash_clientside.set_props(name + "-fault", { children: found[name] });
    named = now;
    return none();
  }

  function dark() {
    const root = document.documentElement;
    let chosen = root.dataset.theme;
    if (!chosen) chosen = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    if (triggered().includes("theme")) chosen = chosen === "dark" ? "light" : "dark";
    root.dataset.theme = chosen;
    return chosen === "dark";
  }

  function play(_clicks, resting) {
    return [!resting, resting ? "Pause" : "Play"];
  }

  function next_step(_count, t, last) {
    const now = Number(t);
    return now >= Number(last) ? 0 : now + 1;
  }

  function pin(_pin, _unpin, state) {
    if (triggered().includes("unpin")) return "";
    return state ? query(state.texts) : none();
  }

  function save_figure() {
    const plot = document.querySelector("#chart .js-plotly-plot");
    window.Plotly.downloadImage(plot, { format: "svg", filename: "selftrain-run", width: 1000, height: 600 });
    return "";
  }

  // Dash marks its lists of radio buttons and checkboxes as list boxes, with inputs inside options. Readers of the
  // screen then announce neither: they are named groups of ordinary inputs, so say that instead.
  const titles = { view: "View", loss: "Loss", fix_bias: "Bias" };
  function mend() {
    document.querySelectorAll(".dash-options-list[role=listbox]").forEach((list) => {
      list.setAttribute("role", "group");
      list.setAttribute("aria-label", titles[list.id] || list.id);
    });
    document.querySelectorAll("label.dash-options-list-option").forEach((option) => {
      for (const name of ["role", "aria-selected"]) if (option.hasAttribute(name)) option.removeAttribute(name);
    });
  }
  new MutationObserver(mend).observe(document.documentElement, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["role", "aria-selected"],
  });

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explorer: { collect, faults, dark, play, next_step, pin, save_figure },
  });
})();
