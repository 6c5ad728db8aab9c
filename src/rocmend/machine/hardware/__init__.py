"""Reading what hardware is there through a `Root`; shared by the hardware collectors."""
