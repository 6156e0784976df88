//! What changes around a coordinator: topics and settings. While it is away to be loaded, the newest are kept for it.

use super::messages::{Reconfigured, TopicsChanged};
use super::{Groups, State};
use crate::core::controller::Image;
use crate::core::group::{self, Coordinator};
use actix::prelude::*;
use std::sync::Arc;

/// The newest.
pub struct News {
    /// How groups are run.
    pub settings: group::Settings,
    /// The topics that there are.
    pub topics: Arc<Image>,
}

impl News {
    /// To a coordinator that has just been loaded. It has looked at no topic yet, so which of them changed does not matter.
    pub fn tell(&self, coordinator: &mut Coordinator) {
        coordinator.reconfigured(self.settings.clone());
        coordinator.topics_changed(self.topics.clone(), &[], true);
    }
}

impl Handler<TopicsChanged> for Groups {
    type Result = ();
    fn handle(&mut self, m: TopicsChanged, _: &mut Context<Self>) {
        self.news.topics = m.topics.clone();
        if let State::Active(coordinator) = &mut self.state {
            coordinator.topics_changed(m.topics, &m.changed, m.some_new);
        }
    }
}

impl Handler<Reconfigured> for Groups {
    type Result = ();
    fn handle(&mut self, m: Reconfigured, _: &mut Context<Self>) {
        self.news.settings = m.0.clone();
        if let State::Active(coordinator) = &mut self.state {
            coordinator.reconfigured(m.0);
        }
    }
}
