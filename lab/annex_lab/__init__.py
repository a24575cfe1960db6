"""The lab: runs programs under every allocator and says, honestly, what each costs."""
