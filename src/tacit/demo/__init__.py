"""The demo: made-up crowds that answer a real collector, and a check of its answers against the truth.

command     `tacit demo`: the order of everything below
serve       starts servers in processes of their own
examples    what is asked, and how the made-up answers are distributed (`crowd` draws them)
send        perturbs and uploads the crowd's answers
check       compares estimates with the truth; `joint` and `table` do so for tables of questions and for SQL
show        prints the comparison
shuffled    `tacit demo --shuffle`: the same for one shuffled collection, with a relay and shufflers
"""
