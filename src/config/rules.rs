//! A placeholder until merge.
use crate::core::controller::records::ResourceType;
use crate::core::controller::{ConfigResource, ConfigRules, Configs, Image, Refusal};
use std::sync::Arc;
/// x
pub struct Rules(Arc<super::Config>);
impl Rules {
    /// x
    pub fn new(c: Arc<super::Config>) -> Rules {
        Rules(c)
    }
}
impl ConfigRules for Rules {
    fn check(&self, _: &Image, _: &ConfigResource, _: &Configs) -> Result<(), Refusal> {
        let _ = &self.0;
        Ok(())
    }
    fn list_default(&self, _: ResourceType, _: &str) -> Option<String> {
        None
    }
}
