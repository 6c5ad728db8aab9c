"""Reading what software is installed through a `Root`; shared by the software collectors."""
