"""Export of trained policies: C, ONNX, JavaScript, a page, and distilled networks in C."""
