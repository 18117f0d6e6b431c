// Shows an answer of the server: figure, sentences, numbers, snippets, and error messages beside their controls.
window.explorer_picture = (function () {
  "use strict";
  const element = (id) => document.getElementById(id);
  const config = { displayModeBar: false };

  // Dash loads Plotly with its graphs, a moment after the page.
  const plotly = new Promise((ready) => {
    const look = () => (window.Plotly ? ready(window.Plotly) : setTimeout(look, 20));
    look();
  });

  function draw(figure) {
    const place = element("chart"), first = !place.data;
    window.Plotly.react(place, figure.data, figure.layout, config);
    if (first) new ResizeObserver(() => window.Plotly.Plots.resize(place)).observe(place);
  }

  function save() {
    const size = { format: "svg", filename: "selftrain-run", width: 1000, height: 600 };
    window.Plotly.downloadImage(element("chart"), size);
  }

  function made(kind, ...parts) {
    const one = document.createElement(kind);
    one.append(...parts);
    return one;
  }

  function write(answer) {
    element("sentences").replaceChildren(...answer.sentences.map((sentence) => made("p", sentence)));
    const numbers = answer.numbers.map(([name, value]) => made("span", made("b", name), " " + value));
    element("numbers").replaceChildren(made("span", `Step ${answer.t}:`), ...numbers);
    element("t-shown").textContent = answer.t;
    element("python").textContent = answer.python;
    element("command").textContent = answer.command;
  }

  // An error message is shown beside its control, or under the figure if it belongs to none.
  let beside = null;
  function say(sentence, field) {
    const place = field && element(field + "-fault");
    if (beside && beside !== place) beside.textContent = "";
    beside = place || null;
    if (place) place.textContent = sentence;
    element("fault").textContent = place ? "" : sentence;
  }

  // Without an answer, what is still shown belongs to earlier settings: words go, the figure is greyed.
  function fault(sentence, field) {
    say(sentence, field);
    element("chart").classList.add("stale");
    for (const name of ["sentences", "numbers", "t-shown", "python", "command"]) element(name).replaceChildren();
  }

  async function show(answer) {
    if (answer.fault) return fault(answer.fault, answer.field);
    await plotly;
    draw(answer.figure);
    write(answer);
    say("", null);
    element("chart").classList.remove("stale");
  }

  return { show, fault, say, save };
})();
