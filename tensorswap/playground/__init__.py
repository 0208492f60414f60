"""The playground: a page on this machine that shows a program's derivatives, plan and values while it is typed.

page/       what the browser loads: no other file, and nothing from a network
gallery/    examples, one file each
server.py   the page and its answers, for this machine only
child.py    a process with limits, in which all work on a text is done
"""
