//! Encodes the JSON text of a [`Reply`] as one piece of bytes. The derived code would encode it byte by byte.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

use crate::worker_messages::{Failure, Reply};

pub(crate) fn serialize<S: Serializer>(reply: &Reply, serializer: S) -> Result<S::Ok, S::Error> {
    reply.as_ref().map(|json| Bytes::new(json)).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reply, D::Error> {
    let reply = Result::<ByteBuf, Failure>::deserialize(deserializer)?;
    Ok(reply.map(ByteBuf::into_vec))
}
