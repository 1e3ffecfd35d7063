//! Every kind of value is read back as it was written.

use std::borrow::Cow;

use urr_db::{Db, Error, Tx, statements};
use urr_kernel::{Scalar, Timestamp, Value, WrongValue};
use uuid::Uuid;

use crate::fresh::on_both_engines;

on_both_engines! {
    values_round_trip,
    null_round_trips,
    integer_out_of_range_is_rejected,
    parameter_may_repeat_and_be_out_of_order,
}

statements! {
    KEEP = "insert into samples (id, yes, small, whole, big, words, bytes, uuid, at, doc)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    FIND = "select yes, small, whole, big, words, bytes, uuid, at, doc from samples where id = $1";
    NARROW = "insert into samples (id, whole) values ($1, $2)";
    TWICE = "select id from samples where big = $2 and whole = $1 and small = $1";
}

/// A JSON column of a domain.
#[derive(Clone, Debug)]
struct Document(String);

impl Scalar for Document {
    fn to_value(&self) -> Value<'_> {
        Value::Json(Cow::Borrowed(&self.0))
    }

    fn from_value(value: Value<'_>) -> Result<Self, WrongValue> {
        String::from_value(value).map(Self)
    }
}

#[derive(Clone, Debug)]
struct Sample {
    yes: bool,
    small: i32,
    whole: i32,
    big: i64,
    words: String,
    bytes: Vec<u8>,
    uuid: Uuid,
    at: Timestamp,
    doc: Document,
}

fn samples() -> Vec<Sample> {
    let plain = Sample {
        yes: true,
        small: 7,
        whole: 70_000,
        big: 7_000_000_000,
        words: "우르르 \"quoted\" 'and' $1 ?1".to_owned(),
        bytes: vec![0, 1, 254, 255],
        uuid: Uuid::from_u128(7),
        at: Timestamp::from_micros(1_780_282_800_123_456),
        doc: Document("{\"a\": [1, null, \"좌석\"]}".to_owned()),
    };
    let least = Sample {
        yes: false,
        small: i16::MIN.into(),
        whole: i32::MIN,
        big: i64::MIN,
        words: String::new(),
        bytes: Vec::new(),
        uuid: Uuid::nil(),
        at: Timestamp::from_micros(i64::MIN),
        doc: Document("null".to_owned()),
    };
    let most = Sample {
        small: i16::MAX.into(),
        whole: i32::MAX,
        big: i64::MAX,
        words: "x".repeat(100_000),
        bytes: vec![9; 100_000],
        uuid: Uuid::max(),
        at: Timestamp::from_micros(i64::MAX),
        ..plain.clone()
    };
    let early = Sample { at: Timestamp::from_micros(-1), ..plain.clone() };
    vec![plain, least, most, early]
}

async fn values_round_trip(db: Db) {
    for (id, sample) in (0_i64..).zip(samples()) {
        let s = sample.clone();
        let found = db.write("test.sample", async |tx: &mut Tx<'_>| {
            let keep: &[&dyn Scalar] =
                &[&id, &s.yes, &s.small, &s.whole, &s.big, &s.words, &s.bytes, &s.uuid, &s.at, &s.doc];
            tx.execute(&KEEP, keep).await?;
            tx.one(&FIND, &[&id], |row| {
                Ok(Sample {
                    yes: row.get(0)?,
                    small: row.get(1)?,
                    whole: row.get(2)?,
                    big: row.get(3)?,
                    words: row.get(4)?,
                    bytes: row.get(5)?,
                    uuid: row.get(6)?,
                    at: row.get(7)?,
                    doc: row.get(8)?,
                })
            })
            .await
        });
        let found: Result<Sample, Error> = found.await;
        assert_eq!(format!("{:?}", found.unwrap()), format!("{sample:?}"));
    }
}

async fn null_round_trips(db: Db) {
    let nothing: &[&dyn Scalar] = &[
        &1_i64,
        &None::<bool>,
        &None::<i32>,
        &None::<i32>,
        &None::<i64>,
        &None::<String>,
        &None::<Vec<u8>>,
        &None::<Uuid>,
        &None::<Timestamp>,
        &None::<Document>,
    ];
    db.write("test.nothing", async |tx: &mut Tx<'_>| {
        tx.execute(&KEEP, nothing).await?;
        tx.one(&FIND, &[&1_i64], |row| {
            assert_eq!(row.get::<Option<bool>>(0)?, None);
            assert_eq!(row.get::<Option<i64>>(3)?, None);
            assert_eq!(row.get::<Option<String>>(4)?, None);
            assert_eq!(row.get::<Option<Uuid>>(6)?, None);
            assert_eq!(row.get::<Option<Timestamp>>(7)?, None);
            assert_eq!(row.get::<Option<String>>(8)?, None);
            row.get::<i64>(3).expect_err("NULL is not a number");
            Ok(())
        })
        .await
    })
    .await
    .unwrap();
}

async fn integer_out_of_range_is_rejected(db: Db) {
    let kept = db.write("test.narrow", async |tx: &mut Tx<'_>| {
        tx.execute(&NARROW, &[&1_i64, &i64::MAX]).await?;
        tx.one(&FIND, &[&1_i64], |row| row.get::<i32>(2)).await
    });
    assert_eq!(kept.await.unwrap_err().kind(), urr_db::Kind::Bug);
}

async fn parameter_may_repeat_and_be_out_of_order(db: Db) {
    let sample = samples().remove(0);
    let found = db.write("test.twice", async |tx: &mut Tx<'_>| {
        let keep: &[&dyn Scalar] = &[
            &1_i64,
            &sample.yes,
            &5_i32,
            &5_i32,
            &6_i64,
            &sample.words,
            &sample.bytes,
            &sample.uuid,
            &sample.at,
            &sample.doc,
        ];
        tx.execute(&KEEP, keep).await?;
        tx.optional(&TWICE, &[&5_i32, &6_i64], |row| row.get::<i64>(0)).await
    });
    assert_eq!(found.await.unwrap(), Some(1));
}
