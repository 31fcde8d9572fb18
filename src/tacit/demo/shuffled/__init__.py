"""`tacit demo --shuffle`: a shuffled collection among real processes, checked against the truth.

run          the order of everything below
parties      a collector, a relay and three shufflers, each in a process and a folder of its own
respondents  a made-up crowd that seals its reports and sends them through the relay
told         what people and programs are told in the end
"""
