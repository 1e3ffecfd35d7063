//! Seats, holds and reservations.
