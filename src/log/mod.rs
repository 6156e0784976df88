//! The log on disk, synchronous and without actors. Imports only `core` types.

pub mod batch;
pub mod codec;
pub mod records;
pub mod validate;
