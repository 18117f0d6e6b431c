"""Small ridge and continuous time: expansion, differential equation, closed forms."""
