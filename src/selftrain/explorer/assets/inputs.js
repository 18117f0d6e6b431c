// The input of `plain_input.py`: drawn once, the browser keeps its value.
window.explorer_inputs = {
  PlainInput: function PlainInput({ setProps, value, checked, ...given }) {
    return window.React.createElement("input", {
      autoComplete: "off", defaultValue: value, defaultChecked: checked, ...given,
    });
  },
};
