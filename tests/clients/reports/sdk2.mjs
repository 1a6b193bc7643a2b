// SPDX-License-Identifier: Apache-2.0
// The AWS SDK for JavaScript, version 2: what it moves into the URLs that it signs.
import assert from "node:assert/strict";
import aws from "aws-sdk";
import { credentials, endpoint, fetched, run, step, tampered } from "./lib.mjs";

const options = { endpoint, region: "us-east-1", s3ForcePathStyle: true, maxRetries: 0, ...credentials };
const s3 = new aws.S3({ ...options, signatureVersion: "v4" });
const plain = new aws.S3(options); // it signs by version 2
const Bucket = "sdk2";
const sign = (operation, input, client = s3) => client.getSignedUrlPromise(operation, { Bucket, Expires: 600, ...input });
const head = (Key) => s3.headObject({ Bucket, Key }).promise();
await s3.createBucket({ Bucket }).promise();
await s3.putObject({ Bucket, Key: "five", Body: "12345" }).promise();

step("a URL with an ACL, a payer, a class, tags, metadata", async () => {
  const Metadata = { who: "Jo Ann" };
  for (const more of [{ ACL: "private" }, { ACL: "bucket-owner-full-control" }, { RequestPayer: "requester" }, { StorageClass: "STANDARD_IA" },
    { Tagging: "a=1&b=2" }, { Metadata }, { ACL: "private", RequestPayer: "requester", StorageClass: "STANDARD_IA", Tagging: "a=1&b=2", Metadata }]) {
    const url = await sign("putObject", { Key: "moved", ...more });
    await fetched(tampered(url), { method: "PUT", body: "x" }, 403);
    await fetched(url, { method: "PUT", body: JSON.stringify(more) }, 200);
    const got = await head("moved");
    assert.deepEqual([got.StorageClass, got.Metadata], [more.StorageClass, more.Metadata ?? {}]);
    assert.equal((await s3.getObjectTagging({ Bucket, Key: "moved" }).promise()).TagSet.length, more.Tagging ? 2 : 0);
    await fetched(await sign("getObject", { Key: "moved", RequestPayer: "requester" }), {}, 200);
    await s3.deleteObject({ Bucket, Key: "moved" }).promise();
  }
});

step("a preflight needs no signature", async () => {
  const CORSConfiguration = { CORSRules: [{ AllowedOrigins: ["*"], AllowedMethods: ["PUT"], AllowedHeaders: ["*"] }] };
  await s3.putBucketCors({ Bucket, CORSConfiguration }).promise();
  for (const client of [s3, plain]) {
    const url = await sign("putObject", { Key: "page", ACL: "private" }, client);
    const { headers } = await fetched(url, { method: "OPTIONS", headers: { origin: "http://app.test", "access-control-request-method": "PUT" } }, 200);
    assert.equal(headers.get("access-control-allow-origin"), "*");
  }
});

await run("sdk2");
