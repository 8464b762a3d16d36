"""What the showcases share: a plan, a daemon, a measurement, a table."""
