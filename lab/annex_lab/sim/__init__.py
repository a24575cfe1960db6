"""Simulated runs: machines (which machine), guest (which program), run (QEMU with our plugin), summary (for people)."""
