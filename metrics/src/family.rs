//! The table of every metric family: name, type, labels, help. One row per family; `testdata/families.txt` is its golden copy, so that a
//! renamed metric is a visible decision. Names of family A follow the Prometheus JMX exporter's examples and Strimzi, to the letter.

/// How Prometheus reads a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; born at 0.
    Counter,
    /// Goes up and down.
    Gauge,
}

macro_rules! families {
    ($($id:ident = $kind:ident $name:literal [$($label:literal)*] $help:literal;)*) => {
        /// A row of the table. Labels are given to `Sink::put` in this order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Family {
            $(#[doc = concat!("`", $name, "`: ", $help)] $id,)*
        }

        impl Family {
            /// Every family, in the table's order.
            pub const ALL: &[Family] = &[$(Family::$id),*];

            /// The name as Prometheus sees it.
            pub fn name(self) -> &'static str {
                match self { $(Family::$id => $name,)* }
            }

            /// Counter or gauge.
            pub fn kind(self) -> Kind {
                match self { $(Family::$id => Kind::$kind,)* }
            }

            /// Label names, in the order in which `Sink::put` takes their values.
            pub fn labels(self) -> &'static [&'static str] {
                match self { $(Family::$id => &[$($label),*],)* }
            }

            /// One sentence for the operator.
            pub fn help(self) -> &'static str {
                match self { $(Family::$id => $help,)* }
            }
        }
    };
}

families! {
    // Replicas and partitions of this broker.
    LeaderCount = Gauge "kafka_server_replicamanager_leadercount" [] "Partitions that this broker leads.";
    PartitionCount = Gauge "kafka_server_replicamanager_partitioncount" [] "Replicas that this broker hosts.";
    UnderReplicatedPartitions = Gauge "kafka_server_replicamanager_underreplicatedpartitions" [] "Partitions led here whose ISR is smaller than their replication factor.";
    UnderMinIsrPartitionCount = Gauge "kafka_server_replicamanager_underminisrpartitioncount" [] "Partitions led here whose ISR is smaller than min.insync.replicas: acks=all is refused.";
    AtMinIsrPartitionCount = Gauge "kafka_server_replicamanager_atminisrpartitioncount" [] "Partitions led here whose ISR is exactly min.insync.replicas: one failure from refusing acks=all.";
    OfflineReplicaCount = Gauge "kafka_server_replicamanager_offlinereplicacount" [] "Replicas hosted here that are offline because of their disk or repeated failures.";
    ReassigningPartitions = Gauge "kafka_server_replicamanager_reassigningpartitions" [] "Partitions led here that are being reassigned.";
    IsrShrinks = Counter "kafka_server_replicamanager_isrshrinks_total" [] "Times a leader here took replicas out of an ISR.";
    IsrExpands = Counter "kafka_server_replicamanager_isrexpands_total" [] "Times a leader here took replicas into an ISR.";
    FailedIsrUpdates = Counter "kafka_server_replicamanager_failedisrupdates_total" [] "ISR changes that the controller refused.";

    // Per partition: the only families whose size follows the number of partitions (see partitions.rs for the switch).
    PartitionUnderReplicated = Gauge "kafka_cluster_partition_underreplicated" ["topic" "partition"] "1 if this broker leads the partition and its ISR is smaller than its replication factor.";
    PartitionUnderMinIsr = Gauge "kafka_cluster_partition_underminisr" ["topic" "partition"] "1 if this broker leads the partition and its ISR is smaller than min.insync.replicas.";
    PartitionAtMinIsr = Gauge "kafka_cluster_partition_atminisr" ["topic" "partition"] "1 if this broker leads the partition and its ISR is exactly min.insync.replicas.";
    PartitionInSyncReplicas = Gauge "kafka_cluster_partition_insyncreplicascount" ["topic" "partition"] "Size of the ISR on the leader, 0 elsewhere.";
    PartitionReplicas = Gauge "kafka_cluster_partition_replicascount" ["topic" "partition"] "Replicas assigned on the leader, 0 elsewhere.";
    PartitionLastStableOffsetLag = Gauge "kafka_cluster_partition_laststableoffsetlag" ["topic" "partition"] "Records between the last stable offset and the high watermark on the leader.";
    LogSize = Gauge "kafka_log_log_size" ["topic" "partition"] "Bytes in the log's segments.";
    LogStartOffset = Gauge "kafka_log_log_logstartoffset" ["topic" "partition"] "First offset that can be read.";
    LogEndOffset = Gauge "kafka_log_log_logendoffset" ["topic" "partition"] "Offset of the next record.";
    LogSegments = Gauge "kafka_log_log_numlogsegments" ["topic" "partition"] "Segments in the log.";

    // Disks.
    OfflineLogDirectoryCount = Gauge "kafka_log_logmanager_offlinelogdirectorycount" [] "Log directories that failed.";
    LogDirectoryOffline = Gauge "kafka_log_logmanager_logdirectoryoffline" ["logDirectory"] "1 if the log directory failed.";
    LogFlushTimeMs = Gauge "kafka_log_logflushstats_logflushrateandtimems" ["quantile"] "Milliseconds a flush to disk takes, over the last minutes.";
    LogFlushCount = Counter "kafka_log_logflushstats_logflushrateandtimems_count_total" [] "Flushes to disk.";
    UncleanablePartitions = Gauge "kafka_log_logcleanermanager_uncleanable_partitions_count" ["logDirectory"] "Partitions whose last compaction failed; the log says why.";
    UncleanableBytes = Gauge "kafka_log_logcleanermanager_uncleanable_bytes" ["logDirectory"] "Bytes that those partitions would have compacted.";
    MaxDirtyPercent = Gauge "kafka_log_logcleanermanager_max_dirty_percent" [] "How much of the dirtiest log is not compacted.";
    CleanerTimeSinceLastRunMs = Gauge "kafka_log_logcleanermanager_time_since_last_run_ms" [] "Milliseconds since a cleaner thread last looked for work; 0 while there is none.";
    CleanerRecopyPercent = Gauge "kafka_log_logcleaner_cleaner_recopy_percent" [] "How much the last compactions kept of what they read.";
    CleanerMaxBufferUtilizationPercent = Gauge "kafka_log_logcleaner_max_buffer_utilization_percent" [] "How full the map of keys was in the last compactions.";
    CleanerMaxCleanTimeSecs = Gauge "kafka_log_logcleaner_max_clean_time_secs" [] "Seconds that the longest of the last compactions took.";
    CleanerMaxCompactionDelaySecs = Gauge "kafka_log_logcleaner_max_compaction_delay_secs" [] "Seconds by which a log that waits is past max.compaction.lag.ms.";
    CleanerDeadThreads = Gauge "kafka_log_logcleaner_deadthreadcount" [] "Cleaner threads that could not be started.";
    DiskReadBytes = Gauge "kafka_server_kafkaserver_linux_disk_read_bytes" [] "Bytes this process made the disks read.";
    DiskWriteBytes = Gauge "kafka_server_kafkaserver_linux_disk_write_bytes" [] "Bytes this process made the disks write.";

    // Traffic by topic; the series without a topic is the whole broker's, topics that are gone included.
    BytesIn = Counter "kafka_server_brokertopicmetrics_bytesin_total" ["topic"] "Bytes that clients produced.";
    BytesOut = Counter "kafka_server_brokertopicmetrics_bytesout_total" ["topic"] "Bytes that consumers fetched.";
    MessagesIn = Counter "kafka_server_brokertopicmetrics_messagesin_total" ["topic"] "Records that clients produced.";
    BytesRejected = Counter "kafka_server_brokertopicmetrics_bytesrejected_total" ["topic"] "Bytes refused because a batch was larger than max.message.bytes.";
    TotalProduceRequests = Counter "kafka_server_brokertopicmetrics_totalproducerequests_total" ["topic"] "Partitions that produce requests asked to append to.";
    TotalFetchRequests = Counter "kafka_server_brokertopicmetrics_totalfetchrequests_total" ["topic"] "Partitions that fetch requests asked to read.";
    FailedProduceRequests = Counter "kafka_server_brokertopicmetrics_failedproducerequests_total" ["topic"] "Appends that failed.";
    FailedFetchRequests = Counter "kafka_server_brokertopicmetrics_failedfetchrequests_total" ["topic"] "Reads that failed.";
    InvalidMagicNumberRecords = Counter "kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total" [] "Batches refused for their format version.";
    InvalidMessageCrcRecords = Counter "kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total" [] "Batches refused for their checksum.";
    InvalidOffsetOrSequenceRecords = Counter "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total" [] "Batches refused for offsets or sequences that do not follow.";
    NoKeyCompactedTopicRecords = Counter "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total" [] "Records without a key refused by a compacted topic.";

    // Requests by API. Fetch is counted twice: as Fetch, and as FetchConsumer or FetchFollower.
    Requests = Counter "kafka_network_requestmetrics_requests_total" ["request" "version"] "Requests handled.";
    Errors = Counter "kafka_network_requestmetrics_errors_total" ["request" "error"] "Error codes answered, NONE included.";
    TotalTimeMs = Gauge "kafka_network_requestmetrics_totaltimems" ["request" "quantile"] "Milliseconds from the request's last byte to the answer's, over the last minutes.";
    TotalTimeCount = Counter "kafka_network_requestmetrics_totaltimems_count_total" ["request"] "Requests timed from end to end.";
    LocalTimeMs = Gauge "kafka_network_requestmetrics_localtimems" ["request" "quantile"] "Milliseconds of work on this broker.";
    LocalTimeCount = Counter "kafka_network_requestmetrics_localtimems_count_total" ["request"] "Requests timed at work on this broker.";
    RemoteTimeMs = Gauge "kafka_network_requestmetrics_remotetimems" ["request" "quantile"] "Milliseconds of waiting: for followers, for data, for the controller.";
    RemoteTimeCount = Counter "kafka_network_requestmetrics_remotetimems_count_total" ["request"] "Requests timed while they waited.";
    ResponseSendTimeMs = Gauge "kafka_network_requestmetrics_responsesendtimems" ["request" "quantile"] "Milliseconds until the socket took the answer.";
    ResponseSendTimeCount = Counter "kafka_network_requestmetrics_responsesendtimems_count_total" ["request"] "Answers timed on their way to the socket.";

    // Edge.
    ConnectionCount = Gauge "kafka_server_socket_server_metrics_connection_count" ["listener" "networkProcessor"] "Open connections by listener and shard.";
    FetchSessions = Gauge "kafka_server_fetchsessioncache_numincrementalfetchsessions" [] "Fetch sessions held.";
    FetchSessionPartitions = Gauge "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached" [] "Partitions held by fetch sessions.";
    FetchSessionEvictions = Counter "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total" [] "Fetch sessions pushed out by others.";
    PurgatorySize = Gauge "kafka_server_delayedoperationpurgatory_purgatorysize" ["delayedOperation"] "Requests that wait, with what is left of those that no longer do.";
    DelayedOperations = Gauge "kafka_server_delayedoperationpurgatory_numdelayedoperations" ["delayedOperation"] "Requests that wait.";
    BrokerState = Gauge "kafka_server_kafkaserver_brokerstate" [] "0 not running, 1 starting, 2 recovery, 3 running, 6 controlled shutdown.";

    // Groups that this broker coordinates.
    NumGroups = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroups" [] "Groups coordinated here.";
    NumGroupsPreparingRebalance = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance" [] "Groups coordinated here whose members are to join again.";
    NumGroupsCompletingRebalance = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance" [] "Groups coordinated here that wait for their leader's assignment.";
    NumGroupsStable = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupsstable" [] "Groups coordinated here in which every member has its assignment.";
    ConsumerGroups = Gauge "kafka_server_group_coordinator_metrics_consumer_group_count" ["state"] "Groups of the consumer protocol (KIP-848) coordinated here, by state.";
    NumGroupsEmpty = Gauge "kafka_coordinator_group_groupmetadatamanager_numgroupsempty" [] "Groups coordinated here without members.";

    // Controller. The cluster's counts are shown by the active controller only, so that sums and averages over nodes are right.
    ActiveControllerCount = Gauge "kafka_controller_kafkacontroller_activecontrollercount" [] "1 on the active controller.";
    OfflinePartitionsCount = Gauge "kafka_controller_kafkacontroller_offlinepartitionscount" [] "Partitions without a leader.";
    PreferredReplicaImbalanceCount = Gauge "kafka_controller_kafkacontroller_preferredreplicaimbalancecount" [] "Partitions whose leader is not their preferred replica.";
    GlobalTopicCount = Gauge "kafka_controller_kafkacontroller_globaltopiccount" [] "Topics in the cluster.";
    GlobalPartitionCount = Gauge "kafka_controller_kafkacontroller_globalpartitioncount" [] "Partitions in the cluster.";
    ActiveBrokerCount = Gauge "kafka_controller_kafkacontroller_activebrokercount" [] "Registered brokers that are not fenced.";
    FencedBrokerCount = Gauge "kafka_controller_kafkacontroller_fencedbrokercount" [] "Registered brokers that are fenced.";
    UncleanLeaderElections = Counter "kafka_controller_controllerstats_uncleanleaderelections_total" [] "Leaders elected from outside the ISR: acknowledged records may be lost.";

    // What kafka_exporter shows, by its names. Only in the profile of that name.
    ExporterBrokers = Gauge "kafka_brokers" [] "Brokers that are not fenced.";
    ExporterPartitions = Gauge "kafka_topic_partitions" ["topic"] "Partitions of the topic.";
    ExporterCurrentOffset = Gauge "kafka_topic_partition_current_offset" ["topic" "partition"] "End of what consumers may read.";
    ExporterOldestOffset = Gauge "kafka_topic_partition_oldest_offset" ["topic" "partition"] "First offset that can be read.";
    ExporterLeader = Gauge "kafka_topic_partition_leader" ["topic" "partition"] "Node id of the leader, -1 if there is none.";
    ExporterLeaderIsPreferred = Gauge "kafka_topic_partition_leader_is_preferred" ["topic" "partition"] "1 if the leader is the preferred replica.";
    ExporterReplicas = Gauge "kafka_topic_partition_replicas" ["topic" "partition"] "Replicas of the partition.";
    ExporterInSyncReplica = Gauge "kafka_topic_partition_in_sync_replica" ["topic" "partition"] "Replicas in sync.";
    ExporterUnderReplicated = Gauge "kafka_topic_partition_under_replicated_partition" ["topic" "partition"] "1 if fewer replicas are in sync than there are.";
    GroupMembers = Gauge "kafka_consumergroup_members" ["consumergroup"] "Members of the group.";
    GroupCurrentOffset = Gauge "kafka_consumergroup_current_offset" ["consumergroup" "topic" "partition"] "What the group has committed.";
    GroupCurrentOffsetSum = Gauge "kafka_consumergroup_current_offset_sum" ["consumergroup" "topic"] "What the group has committed, over all partitions of the topic.";
    GroupLag = Gauge "kafka_consumergroup_lag" ["consumergroup" "topic" "partition"] "Records between what the group has committed and the end of the partition.";
    GroupLagSum = Gauge "kafka_consumergroup_lag_sum" ["consumergroup" "topic"] "Records between what the group has committed and the ends of the topic's partitions.";

    // Metadata quorum.
    RaftCurrentLeader = Gauge "kafka_server_raftmetrics_current_leader" [] "Node id of the quorum's leader, -1 if unknown.";
    RaftCurrentEpoch = Gauge "kafka_server_raftmetrics_current_epoch" [] "Epoch of the metadata quorum.";
    RaftCurrentState = Gauge "kafka_server_raftmetrics_current_state" ["current_state"] "1 for the state this node is in.";
    RaftHighWatermark = Gauge "kafka_server_raftmetrics_high_watermark" [] "High watermark of the metadata log, -1 if unknown.";
    RaftLogEndOffset = Gauge "kafka_server_raftmetrics_log_end_offset" [] "End of the metadata log.";

    // Ours.
    BuildInfo = Gauge "understudy_build_info" ["version"] "1, with the version that runs.";
    NodeInfo = Gauge "understudy_node_info" ["node_id" "cluster_id"] "1, with who this is.";
    ActorDeaths = Counter "understudy_actor_deaths_total" ["actor" "panicked"] "Actors that ended, by kind and by whether they panicked.";
    ActorRestarts = Counter "understudy_actor_restarts_total" ["actor"] "Actors that were started again after a death.";
    ActorMailboxDepth = Gauge "understudy_actor_mailbox_depth" ["actor"] "Messages sent and not yet handled, over all actors of the kind.";
    Connections = Gauge "understudy_connections" [] "Open client connections.";
    ConnectionsRefused = Counter "understudy_connections_refused_total" ["reason"] "Connections closed by us before or without an answer.";
    AdmittedBytes = Gauge "understudy_admitted_bytes" [] "Request bytes in memory whose answers are not written yet.";
    InFlightRequests = Gauge "understudy_in_flight_requests" [] "Requests read whose answers are not written yet.";
    ApiRequests = Counter "understudy_requests_total" ["api" "error"] "Error codes answered by API, NONE included.";
    Elections = Counter "understudy_elections_total" ["type" "reason"] "Partitions that got another leader, counted by the controller that decided it.";
    Bound = Gauge "understudy_bound" ["bound"] "The limits this node enforces, by config key or name.";
    SeriesDropped = Counter "understudy_metrics_series_dropped_total" [] "Series left out of scrapes because there were too many.";

    // The process, as Prometheus clients name it.
    ProcessCpuSeconds = Counter "process_cpu_seconds_total" [] "User and system CPU time.";
    ProcessResidentBytes = Gauge "process_resident_memory_bytes" [] "Resident memory.";
    ProcessVirtualBytes = Gauge "process_virtual_memory_bytes" [] "Virtual memory.";
    ProcessOpenFds = Gauge "process_open_fds" [] "Open file descriptors.";
    ProcessMaxFds = Gauge "process_max_fds" [] "Most file descriptors that may be open.";
    ProcessThreads = Gauge "process_threads" [] "OS threads.";
    ProcessStartSeconds = Gauge "process_start_time_seconds" [] "Start of the process since the Unix epoch.";
}
