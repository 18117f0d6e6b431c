"""The large-system limit: equations of a step, engines that solve them, laws and limits."""
