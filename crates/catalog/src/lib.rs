//! Events, sale windows, halls and their seats.
