//! Checks of the project itself: who imports what, what every file begins with, tables and documents that must agree with the code.
//! Not style: rustfmt and clippy have that.

mod layers;
mod source;
