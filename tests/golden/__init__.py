"""The judge of the redesign: asks everything that users ask, keeps the answers, and compares those of another commit.

    python -m tests.golden record FILE [--database sqlite|postgresql]   # on the commit before
    python -m tests.golden replay FILE [--database sqlite|postgresql]   # on each commit after it

Questions are random, by one seed, and are kept with their answers in FILE, an SQLite database: all operations of the
OpenAPI document, mistakes among them, lists walked by their cursors, pages, tools for agents, and commands. `replay`
asks the same ones and prints what differs. Both run on one day, since ages and days left are answers, too. It leaves
the tree with the step that it judges.
"""
