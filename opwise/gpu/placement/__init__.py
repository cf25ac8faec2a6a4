"""Which Applys run on the device, the transfers between host and device, and the order of both."""
