//! Metric families.
