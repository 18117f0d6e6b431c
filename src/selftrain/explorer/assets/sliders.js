// Converts the position of a slider to the text of its field and back. Controls are entries of `_table` in `layout.py`.
window.explorer_sliders = (function () {
  "use strict";

  function ends(control) {
    // If 0 or infinity is allowed, it is at one end of a logarithmic slider.
    return { first: control.zero && control.scale === "log" ? 1 : 0, last: control.infinite ? 1 : 0 };
  }

  function toText(place, control, places) {
    const { first, last } = ends(control);
    if (first && place <= 0) return "0";
    if (last && place >= places) return "inf";
    const share = (place - first) / (places - first - last);
    if (control.scale === "log") {
      const low = Math.log(control.low), high = Math.log(control.high);
      return String(Number(Math.exp(low + share * (high - low)).toPrecision(3)));
    }
    const value = control.low + share * (control.high - control.low);
    return control.scale === "whole" ? String(Math.round(value)) : String(Number(value.toFixed(4)));
  }

  // Null if a text has no position: it is empty, a list of numbers, or not a number.
  function toPlace(text, control, places) {
    const { first, last } = ends(control);
    const words = text.trim(), value = Number(words);
    if (words === "inf") return places;
    if (words === "" || !Number.isFinite(value)) return null;
    if (first && value <= 0) return 0;
    let share = (value - control.low) / (control.high - control.low);
    if (control.scale === "log") {
      if (value <= 0) return null;
      share = Math.log(value / control.low) / Math.log(control.high / control.low);
    }
    return Math.round(first + Math.min(1, Math.max(0, share)) * (places - first - last));
  }

  return { toText, toPlace };
})();
