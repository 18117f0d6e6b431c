"""The limit of many steps with a small ridge, in continuous time: the expansion of a step, the
differential equation, closed forms.
"""
