// The input of `layout.py`: rendered once; the browser stores its value.
window.explorer_inputs = {
  PlainInput: function PlainInput({ setProps, value, checked, ...given }) {
    return window.React.createElement("input", {
      autoComplete: "off", defaultValue: value, defaultChecked: checked, ...given,
    });
  },
};
