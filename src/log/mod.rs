//! The log on disk, synchronous and without actors. Imports only `core` types.

pub mod batch;
mod builder;
pub mod codec;
mod deflate;
mod inflate;
pub mod records;
mod source;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
mod tests;
pub mod validate;
mod varint;
mod window;
