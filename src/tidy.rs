//! Checks of the project itself: who imports what, what every file begins with, tables and documents that must agree with the code.
//! Not style: rustfmt and clippy have that. Each check is a function from text to complaints, so that a test can show it a bad text.

mod documents;
mod files;
mod layers;
mod source;
mod tables;
