// SPDX-License-Identifier: Apache-2.0
// What the AWS SDK for JavaScript and minio-js of today ask of an S3 server beyond docs/recipes.md: checksums that the SDK adds by itself,
// bodies of unknown length, lists in pages, conditions, copies, tags, links, parts by hand, many at once deleted.
// node js_client.mjs URL ACCESS_KEY SECRET_KEY, where node_modules has @aws-sdk/client-s3, @aws-sdk/lib-storage,
// @aws-sdk/s3-request-presigner and minio.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import * as aws from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import * as minio from "minio";

const [url, accessKeyId, secretAccessKey] = process.argv.slice(2);
const { protocol, hostname, port } = new URL(url);
const steps = [];
const step = (name, what) => steps.push([name, what]);
const text = async (answer) => await answer.Body.transformToString();
const bytes = async (answer) => Buffer.from(await answer.Body.transformToByteArray());
const all = async (stream) => {
  const got = [];
  for await (const one of stream) got.push(one);
  return got;
};
const collect = async (stream) => Buffer.concat(await all(stream));
const fails = async (promise, code) => {
  await assert.rejects(promise, (e) => (assert.equal(e.name === "S3Error" ? e.code : e.name, code), true));
};

const s3 = new aws.S3Client({
  endpoint: url, region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials: { accessKeyId, secretAccessKey },
});
const Bucket = "aws-js";
const put = (Key, Body, more) => s3.send(new aws.PutObjectCommand({ Bucket, Key, Body, ...more }));
const get = (Key, more) => s3.send(new aws.GetObjectCommand({ Bucket, Key, ...more }));
const big = randomBytes(17 << 20);

step("buckets", async () => {
  await s3.send(new aws.CreateBucketCommand({ Bucket }));
  assert((await s3.send(new aws.ListBucketsCommand({}))).Buckets.some((b) => b.Name === Bucket));
  await s3.send(new aws.HeadBucketCommand({ Bucket }));
  await fails(s3.send(new aws.HeadBucketCommand({ Bucket: "absent" })), "NotFound");
  assert.equal((await s3.send(new aws.GetBucketLocationCommand({ Bucket }))).LocationConstraint, undefined);
});

step("checksums", async () => {
  const { ChecksumCRC32, ETag } = await put("sum", "hello");
  assert.equal(ChecksumCRC32, "NhCmhg==");
  assert.equal(ETag, '"5d41402abc4b2a76b9719d911017c592"');
  for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]) {
    const stored = await put("sum", big, { ChecksumAlgorithm });
    const field = "Checksum" + ChecksumAlgorithm;
    assert(stored[field], ChecksumAlgorithm);
    const got = await get("sum", { ChecksumMode: "ENABLED" });
    assert.equal(got[field], stored[field]);
    assert(big.equals(await bytes(got)));
  }
  await fails(put("sum", "hello", { ChecksumCRC32: "AAAAAA==" }), "BadDigest");
});

step("streams", async () => {
  // In aws-chunked frames with a trailer, its length known.
  await put("stream", Readable.from([big.subarray(0, 5 << 20), big.subarray(5 << 20)]), { ContentLength: big.length });
  assert(big.equals(await bytes(await get("stream"))));
  // And not known: parts.
  for (const partSize of [5 << 20, 8 << 20, 32 << 20]) {
    const up = new Upload({ client: s3, params: { Bucket, Key: "unknown", Body: Readable.from([big]) }, partSize });
    const done = await up.done();
    assert.equal(/-\d+"$/.test(done.ETag), partSize < big.length, `${partSize}: ${done.ETag}`);
    assert(big.equals(await bytes(await get("unknown"))));
  }
  await put("empty", "");
  assert.equal(await text(await get("empty")), "");
});

step("names", async () => {
  const names = ["with blank", "plus+and%25percent", "amp&eq=x", "quote'double\"", "ünï/cödé ☃", "日本語", "..a/./b", "()[]!*~", "a//b"];
  for (const name of names) {
    await put("names/" + name, name);
    assert.equal(await text(await get("names/" + name)), name);
  }
  const listed = await s3.send(new aws.ListObjectsV2Command({ Bucket, Prefix: "names/", EncodingType: "url" }));
  assert.equal(listed.KeyCount, names.length);
  const Objects = names.map((n) => ({ Key: "names/" + n }));
  assert.equal((await s3.send(new aws.DeleteObjectsCommand({ Bucket, Delete: { Objects } }))).Deleted.length, names.length);
});

step("lists", async () => {
  for (let i = 0; i < 23; i++) await put(`list/${i % 3}/${i}`, String(i));
  const pages = await all(aws.paginateListObjectsV2({ client: s3, pageSize: 5 }, { Bucket, Prefix: "list/" }));
  assert.equal(pages.length, 5);
  assert.equal(pages.flatMap((p) => p.Contents).length, 23);
  const tops = await s3.send(new aws.ListObjectsCommand({ Bucket, Prefix: "list/", Delimiter: "/" }));
  assert.deepEqual(tops.CommonPrefixes.map((p) => p.Prefix), ["list/0/", "list/1/", "list/2/"]);
});

step("conditions and ranges", async () => {
  const { ETag } = await put("cond", "0123456789", { IfNoneMatch: "*", ContentType: "text/x" });
  await fails(put("cond", "again", { IfNoneMatch: "*" }), "PreconditionFailed");
  await put("cond", "9876543210", { IfMatch: ETag });
  await fails(get("cond", { IfMatch: ETag }), "PreconditionFailed");
  const got = await get("cond", { Range: "bytes=2-4" });
  assert.equal(await text(got), "765");
  assert.equal(got.ContentRange, "bytes 2-4/10");
  await fails(get("cond", { Range: "bytes=99-" }), "InvalidRange");
  await fails(get("absent"), "NoSuchKey");
  await fails(s3.send(new aws.HeadObjectCommand({ Bucket, Key: "absent" })), "NotFound");
  const ObjectAttributes = ["ETag", "ObjectSize", "Checksum"];
  const attributes = await s3.send(new aws.GetObjectAttributesCommand({ Bucket, Key: "sum", ObjectAttributes }));
  assert.equal(attributes.ObjectSize, big.length);
});

step("copies and tags", async () => {
  await put("from", "content", { Metadata: { k: "v" }, Tagging: "t=1" });
  await s3.send(new aws.CopyObjectCommand({ Bucket, Key: "to", CopySource: `${Bucket}/from` }));
  assert.deepEqual((await s3.send(new aws.HeadObjectCommand({ Bucket, Key: "to" }))).Metadata, { k: "v" });
  assert.deepEqual((await s3.send(new aws.GetObjectTaggingCommand({ Bucket, Key: "to" }))).TagSet, [{ Key: "t", Value: "1" }]);
  await s3.send(new aws.PutObjectTaggingCommand({ Bucket, Key: "to", Tagging: { TagSet: [{ Key: "é", Value: "ü" }] } }));
  assert.deepEqual((await s3.send(new aws.GetObjectTaggingCommand({ Bucket, Key: "to" }))).TagSet, [{ Key: "é", Value: "ü" }]);
});

step("parts by hand", async () => {
  const { UploadId } = await s3.send(new aws.CreateMultipartUploadCommand({ Bucket, Key: "parts", ChecksumAlgorithm: "CRC32C" }));
  const Parts = [];
  const part = { Bucket, Key: "parts", UploadId };
  for (const PartNumber of [1, 2]) {
    const Body = big.subarray((PartNumber - 1) * (6 << 20), PartNumber * (6 << 20));
    const done = await s3.send(new aws.UploadPartCommand({ ...part, PartNumber, Body, ChecksumAlgorithm: "CRC32C" }));
    Parts.push({ PartNumber, ETag: done.ETag, ChecksumCRC32C: done.ChecksumCRC32C });
  }
  const source = { CopySource: `${Bucket}/sum`, CopySourceRange: `bytes=${12 << 20}-${big.length - 1}` };
  const { ETag, ChecksumCRC32C } = (await s3.send(new aws.UploadPartCopyCommand({ ...part, ...source, PartNumber: 3 }))).CopyPartResult;
  Parts.push({ PartNumber: 3, ETag, ChecksumCRC32C });
  assert.equal((await s3.send(new aws.ListPartsCommand({ Bucket, Key: "parts", UploadId }))).Parts.length, 3);
  await s3.send(new aws.CompleteMultipartUploadCommand({ Bucket, Key: "parts", UploadId, MultipartUpload: { Parts } }));
  assert(big.equals(await bytes(await get("parts", { ChecksumMode: "ENABLED" }))));
  assert.equal((await get("parts", { PartNumber: 2 })).ContentLength, 6 << 20);
});

step("links", async () => {
  const there = await getSignedUrl(s3, new aws.PutObjectCommand({ Bucket, Key: "link" }), { expiresIn: 60 });
  assert.equal((await fetch(there, { method: "PUT", body: "by link" })).status, 200);
  assert.equal(await (await fetch(await getSignedUrl(s3, new aws.GetObjectCommand({ Bucket, Key: "link" })))).text(), "by link");
});

step("end", async () => {
  for await (const page of aws.paginateListObjectsV2({ client: s3 }, { Bucket }))
    await s3.send(new aws.DeleteObjectsCommand({ Bucket, Delete: { Objects: page.Contents.map(({ Key }) => ({ Key })), Quiet: true } }));
  await s3.send(new aws.DeleteBucketCommand({ Bucket }));
});

const client = new minio.Client({
  endPoint: hostname, port: Number(port), useSSL: protocol === "https:", region: "us-east-1", partSize: 5 << 20,
  accessKey: accessKeyId, secretKey: secretAccessKey,
});
const name = "minio-js";

step("minio: buckets and objects", async () => {
  await client.makeBucket(name);
  assert(await client.bucketExists(name));
  assert(!(await client.bucketExists("absent")));
  assert((await client.listBuckets()).some((b) => b.name === name));
  for (const [key, data] of [["small", "x"], ["ünï cödé+%", "odd"], ["empty", ""], ["big", big]]) {
    await client.putObject(name, key, data, undefined, { "Content-Type": "text/x", a: "b" });
    assert(Buffer.from(data).equals(await collect(await client.getObject(name, key))), key);
    const stat = await client.statObject(name, key);
    assert.equal(stat.size, data.length);
    assert.equal(stat.metaData.a, "b");
  }
  await client.putObject(name, "stream", Readable.from([big]));
  assert(big.equals(await collect(await client.getObject(name, "stream"))));
  assert(big.subarray(1000, 3000).equals(await collect(await client.getPartialObject(name, "big", 1000, 2000))));
  await fails(client.statObject(name, "absent"), "NotFound");
});

step("minio: lists, copies, links, tags", async () => {
  for (let i = 0; i < 7; i++) await client.putObject(name, `l/${i}`, String(i));
  assert.equal((await all(client.listObjectsV2(name, "l/", true))).length, 7);
  assert.equal((await all(client.listObjects(name, "", false))).filter((o) => o.prefix).length, 1);
  await client.copyObject(name, "copy", `/${name}/small`);
  assert.equal(String(await collect(await client.getObject(name, "copy"))), "x");
  await client.composeObject(new minio.CopyDestinationOptions({ Bucket: name, Object: "composed" }),
    [new minio.CopySourceOptions({ Bucket: name, Object: "big" }), new minio.CopySourceOptions({ Bucket: name, Object: "small" })]);
  assert.equal((await client.statObject(name, "composed")).size, big.length + 1);
  assert.equal(await (await fetch(await client.presignedGetObject(name, "small", 60))).text(), "x");
  await client.setObjectTagging(name, "small", { k: "v" });
  assert.deepEqual((await client.getObjectTagging(name, "small")).flat(), [{ Key: "k", Value: "v" }]);
  await client.setBucketTagging(name, { team: "x" });
  const policy = client.newPostPolicy();
  policy.setBucket(name);
  policy.setKey("posted");
  policy.setExpires(new Date(Date.now() + 60000));
  const { postURL, formData } = await client.presignedPostPolicy(policy);
  const form = new FormData();
  for (const [k, v] of Object.entries(formData)) form.append(k, v);
  form.append("file", new Blob(["by form"]));
  assert.equal((await fetch(postURL, { method: "POST", body: form })).status, 204);
  assert.equal(String(await collect(await client.getObject(name, "posted"))), "by form");
});

step("minio: end", async () => {
  await client.removeObjects(name, (await all(client.listObjectsV2(name, "", true))).map((o) => o.name));
  await client.removeBucket(name);
});

for (const [name, what] of steps) {
  try {
    await what();
  } catch (e) {
    console.error(`${name}:`, e);
    process.exitCode = 1;
    break;
  }
}
