"""Random fits of everything public, each held to the same laws: `make fuzz`, or `python -m fuzz` in tests/.

draw.py makes the case of a seed, invariants.py says which laws it breaks, runner.py runs many in processes.
"""
