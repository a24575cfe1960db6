"""Energy and area of a simulated run, from its statistics: docs/hardware-energy.md."""
