"""What the operator `aggregate` is made of: calls in an expression, functions, sketches."""
