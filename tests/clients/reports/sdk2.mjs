// SPDX-License-Identifier: Apache-2.0
// The AWS SDK for JavaScript, version 2: what it moves into the URLs that it signs, and the signatures of version 2 that it makes by default in
// us-east-1.
import assert from "node:assert/strict";
import aws from "aws-sdk";
import { credentials, endpoint, fetched, run, sigv2, step, tampered } from "./lib.mjs";

const options = { endpoint, region: "us-east-1", s3ForcePathStyle: true, maxRetries: 0, ...credentials };
const s3 = new aws.S3({ ...options, signatureVersion: "v4" });
const plain = new aws.S3(options);
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

step(`what it signs by default, with auth.sigv2 ${sigv2 ? "presigned" : "off"}`, async () => {
  const get = await sign("getObject", { Key: "five", ResponseContentType: "a/b" }, plain);
  assert.match(get, /[?&]AWSAccessKeyId=/);
  const put = await sign("putObject", { Key: "put" }, plain);
  const typed = await sign("putObject", { Key: "typed", ContentType: "a/b" }, plain);
  if (!sigv2) {
    assert.match((await fetched(get, {}, 400)).text, /s3v4/);
    assert.match((await fetched(put, { method: "PUT", body: "x" }, 400)).text, /s3v4/);
    return;
  }
  const { text, headers } = await fetched(get, {}, 200);
  assert.deepEqual([text, headers.get("content-type")], ["12345", "a/b"]);
  await fetched(get.replace("a%2Fb", "a%2Fc"), {}, 403);
  await fetched(tampered(get), {}, 403);
  await fetched(await sign("headObject", { Key: "five" }, plain), { method: "HEAD" }, 200);
  await fetched(put, { method: "PUT", body: new Uint8Array(7) }, 200);
  assert.equal((await head("put")).ContentLength, 7);
  await fetched(typed, { method: "PUT", body: "x", headers: { "content-type": "a/b" } }, 200);
  assert.equal((await head("typed")).ContentType, "a/b");
  await fetched(typed, { method: "PUT", body: "x", headers: { "content-type": "a/c" } }, 403);
});

await run("sdk2");
