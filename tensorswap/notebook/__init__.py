"""Notebooks: what programs, plans and trainings look like there, and a cell magic that holds statements.

markup           the style, and tables and code as HTML
shown_program    a program with its derivative and its dataflow
shown_plan       the kernels of a plan
shown_training   histories, and what ts.fit gives
loop_magic       `%load_ext tensorswap`, then `%%loop`

Nothing here imports IPython, a compiler or a library of plots. The classes themselves have `_repr_html_`, which looks
its function up by name (lazy.py), so that nothing below knows of this room.
"""
