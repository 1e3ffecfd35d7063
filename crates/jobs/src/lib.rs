//! Reconcilers, schedules, leases, and the tasks that shutdown waits for.
