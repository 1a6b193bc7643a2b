// SPDX-License-Identifier: Apache-2.0
// Requests of the AWS SDK for JavaScript, version 3, that S3 servers are reported to answer wrongly; what the SDK has only signed (URLs,
// forms) goes out by fetch, as from a page.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import * as aws from "@aws-sdk/client-s3";
import { createPresignedPost } from "@aws-sdk/s3-presigned-post";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { credentials, cut, decoded, endpoint, fetched, form, raw, run, step, tampered } from "./lib.mjs";

const s3 = new aws.S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials });
const Bucket = "sdk3";
const send = (name, input) => s3.send(new aws[name + "Command"]({ Bucket, ...input }));
const sign = (name, input, options) => getSignedUrl(s3, new aws[name + "Command"]({ Bucket, ...input }), { expiresIn: 600, ...options });
const head = (Key, input) => send("HeadObject", { Key, ...input });
const fails = (promise, code, status) => assert.rejects(promise, (e) => {
  assert.deepEqual([e.name, e.$metadata?.httpStatusCode], [code, status], String(e));
  return true;
});
// Status and code of an answer to a URL.
const answered = async (url, method, body) => {
  const answer = await fetch(url, { method, body });
  const text = await answer.text();
  return { status: answer.status, code: /<Code>(.*)<\/Code>/.exec(text)?.[1], headers: answer.headers, text };
};
const preflight = (url, method, more) => fetched(url, {
  method: "OPTIONS", headers: { origin: "http://app.test", "access-control-request-method": method, ...more },
}, 200);
await send("CreateBucket", {});
const owner = (await send("GetBucketAcl", {})).Owner.ID;
await send("PutObject", { Key: "five", Body: "12345", ContentType: "text/x" });
await send("PutObject", { Key: "empty", Body: "" });

step("a preflight needs no signature", async () => {
  await send("PutBucketCors", {
    CORSConfiguration: { CORSRules: [{ AllowedOrigins: ["http://app.test"], AllowedMethods: ["GET", "PUT", "POST"], AllowedHeaders: ["*"] }] },
  });
  const { UploadId } = await send("CreateMultipartUpload", { Key: "page" });
  const short = await sign("PutObject", { Key: "page" }, { expiresIn: 1 });
  const urls = [
    ["PUT", await sign("PutObject", { Key: "page" })],
    ["PUT", await sign("PutObject", { Key: "page", ACL: "private", RequestPayer: "requester", Metadata: { who: "x" } })],
    ["PUT", await sign("UploadPart", { Key: "page", UploadId, PartNumber: 1 })],
    ["POST", await sign("CreateMultipartUpload", { Key: "page" })],
    ["GET", await sign("GetObject", { Key: "five", ResponseContentType: "a/b" })],
    ["GET", await sign("GetObject", { Key: "absent" })],
    ["PUT", tampered(await sign("PutObject", { Key: "page" }))],
    ["PUT", cut(await sign("PutObject", { Key: "page" }))],
    ["PUT", `${endpoint}/${Bucket}/page?AWSAccessKeyId=x&Expires=1&Signature=y`],
    ["PUT", short],
  ];
  await sleep(2100);
  for (const [method, url] of urls) {
    const { headers } = await preflight(url, method, { "access-control-request-headers": "content-type,x-amz-date" });
    assert.equal(headers.get("access-control-allow-origin"), "http://app.test", url);
    assert.match(headers.get("access-control-allow-methods"), new RegExp(method));
    assert.match(headers.get("access-control-allow-headers"), /content-type/i);
  }
  // The rules decide, not the signature, and what is then sent is judged by it.
  await fetched(urls[0][1], { method: "OPTIONS", headers: { origin: "http://other.test", "access-control-request-method": "PUT" } }, 403);
  await fetched(urls[0][1], { method: "OPTIONS", headers: { origin: "http://app.test", "access-control-request-method": "DELETE" } }, 403);
  const { headers } = await fetched(urls[0][1], { method: "PUT", body: "by page", headers: { origin: "http://app.test" } }, 200);
  assert.equal(headers.get("access-control-allow-origin"), "http://app.test");
  await fetched(urls[6][1], { method: "PUT", body: "x", headers: { origin: "http://app.test" } }, 403);
  await fetched(short, { method: "PUT", body: "x", headers: { origin: "http://app.test" } }, 403);
  await send("AbortMultipartUpload", { Key: "page", UploadId });
  await send("DeleteBucketCors", {});
  await fetched(urls[0][1], { method: "OPTIONS", headers: { origin: "http://app.test", "access-control-request-method": "PUT" } }, 403);
});

// What the presigner moves into the URL is what the header would be: one table of inputs, each sent both ways.
const both = {
  PutObject: [
    {}, { ACL: "private" }, { ACL: "bucket-owner-full-control" }, { ACL: "public-read" }, { ACL: "nonsense" }, { RequestPayer: "requester" },
    { ExpectedBucketOwner: () => owner }, { ExpectedBucketOwner: "000000000000" }, { StorageClass: "STANDARD_IA" }, { StorageClass: "nonsense" },
    { Tagging: "a=1&b=%C3%BC" }, { Tagging: "a=1&a=2" }, { Metadata: { one: "1", two: "b c" } },
    { ACL: "private", RequestPayer: "requester", StorageClass: "STANDARD_IA", Tagging: "a=1", Metadata: { one: "1" } },
  ],
  GetObject: [{}, { RequestPayer: "requester" }, { ExpectedBucketOwner: () => owner }, { ExpectedBucketOwner: "000000000000" }, { ChecksumMode: "ENABLED" },
    { ResponseContentType: "image/png", RequestPayer: "requester" }],
  HeadObject: [{ RequestPayer: "requester" }, { ExpectedBucketOwner: "000000000000" }, { ChecksumMode: "ENABLED" }],
  ListObjectsV2: [{ RequestPayer: "requester" }, { ExpectedBucketOwner: "000000000000" }],
  CreateMultipartUpload: [
    {}, { ACL: "private" }, { ACL: "public-read" }, { RequestPayer: "requester" }, { StorageClass: "STANDARD_IA", Tagging: "a=1", Metadata: { one: "1" } },
    { ExpectedBucketOwner: "000000000000" }, { ChecksumAlgorithm: "SHA256" }, { ChecksumAlgorithm: "CRC32C" },
    { ChecksumAlgorithm: "CRC64NVME", ChecksumType: "FULL_OBJECT" }, { ChecksumAlgorithm: "SHA256", ChecksumType: "FULL_OBJECT" },
  ],
  UploadPart: [{ RequestPayer: "requester" }, { ExpectedBucketOwner: () => owner }, { ExpectedBucketOwner: "000000000000" }],
};
const methods = { PutObject: "PUT", GetObject: "GET", HeadObject: "HEAD", ListObjectsV2: "GET", CreateMultipartUpload: "POST", UploadPart: "PUT" };

// What is there after a request, of all that it may have said.
const effect = async (name, Key, UploadId) => {
  if (name === "PutObject") {
    const { Metadata, StorageClass, ContentLength } = await head(Key);
    return { Metadata, StorageClass, ContentLength, ...(await send("GetObjectTagging", { Key })), $metadata: undefined };
  }
  if (name !== "CreateMultipartUpload") return undefined;
  const { ChecksumAlgorithm, ChecksumType, StorageClass } = await send("ListParts", { Key, UploadId });
  const { ETag, ...part } = await send("UploadPart", { Key, UploadId, PartNumber: 1, Body: "part", ChecksumAlgorithm });
  const sum = Object.fromEntries(Object.entries(part).filter(([field]) => field.startsWith("Checksum")));
  await send("CompleteMultipartUpload", { Key, UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag, ...sum }] } });
  return { ChecksumAlgorithm, ChecksumType, StorageClass, ...(await effect("PutObject", Key)) };
};

for (const [name, inputs] of Object.entries(both)) {
  step(`${name}: a URL says what headers say`, async () => {
    const wrong = [];
    for (let input of inputs) {
      input = Object.fromEntries(Object.entries(input).map(([k, v]) => [k, typeof v === "function" ? v() : v]));
      const Key = name === "GetObject" || name === "HeadObject" ? "five" : `both-${name}`;
      const upload = name === "UploadPart" ? { UploadId: (await send("CreateMultipartUpload", { Key })).UploadId, PartNumber: 1 } : {};
      const inUrl = name === "ListObjectsV2" ? input : { Key, ...upload, ...input };
      const body = methods[name] === "PUT" ? { Body: "body" } : {};
      const byHeader = await send(name, { ...inUrl, ...body }).then(
        async (answer) => ({ status: 200, effect: await effect(name, Key, answer.UploadId) }),
        (e) => ({ status: e.$metadata.httpStatusCode, code: e.name }),
      );
      if (name === "PutObject") await send("DeleteObject", { Key });
      const url = await sign(name, inUrl);
      const { status, code, headers, text } = await answered(url, methods[name], body.Body);
      const byUrl = { status };
      if (status === 200) byUrl.effect = await effect(name, Key, /<UploadId>(.*)<\/UploadId>/.exec(text)?.[1]);
      // A HEAD's answer has no code, and the SDK makes one up.
      else byUrl.code = name === "HeadObject" ? byHeader.code : code;
      try {
        assert.deepEqual(byUrl, byHeader);
        if (status === 200 && input.ChecksumMode) assert(headers.get("x-amz-checksum-crc32"), "no checksum");
      } catch {
        wrong.push(`${JSON.stringify(input)}: by URL ${JSON.stringify(byUrl)}, by headers ${JSON.stringify(byHeader)}`);
      }
      if (name === "UploadPart") await send("AbortMultipartUpload", { Key, ...upload });
    }
    assert.equal(wrong.length, 0, `\n${wrong.join("\n")}`);
  });
}

step("parameters that mean nothing for a method are passed over", async () => {
  for (const [name, value] of [["response-content-type", "image/png"], ["response-content-disposition", "attachment"], ["x-amz-user-agent", "aws-sdk-js/3"]]) {
    const command = new aws.PutObjectCommand({ Bucket, Key: "over" });
    command.middlewareStack.add((next) => (args) => {
      args.request.query[name] = value;
      return next(args);
    }, { step: "build" });
    await fetched(await getSignedUrl(s3, command, { expiresIn: 60 }), { method: "PUT", body: name }, 200);
  }
});

step("HEAD with Range", async () => {
  const got = await head("five", { Range: "bytes=0-1" });
  assert.deepEqual([got.$metadata.httpStatusCode, got.ContentRange, got.ContentLength], [206, "bytes 0-1/5", 2]);
  // As DuckDB asks, of a link.
  const { status, headers } = await raw(await sign("HeadObject", { Key: "five" }), { method: "HEAD", headers: { range: "bytes=0-0" } });
  assert.deepEqual([status, headers["content-range"], headers["content-length"]], [206, "bytes 0-0/5", "1"]);
  await assert.rejects(head("five", { Range: "bytes=9-" }), (e) => e.$metadata.httpStatusCode === 416);
  assert.equal((await head("five", { Range: "lines=1-2" })).ContentLength, 5);
  await assert.rejects(head("five", { Range: "bytes=9-", IfMatch: '"0"' }), (e) => e.$metadata.httpStatusCode === 412);
});

step("the last bytes of an empty object", async () => {
  for (const n of [1, 65536]) {
    const got = await send("GetObject", { Key: "empty", Range: `bytes=-${n}` });
    assert.deepEqual([got.$metadata.httpStatusCode, got.ContentLength, got.ContentRange], [200, 0, undefined]);
    assert.equal(await got.Body.transformToString(), "");
  }
  for (const Range of ["bytes=-0", "bytes=0-0", "bytes=0-"]) await fails(send("GetObject", { Key: "empty", Range }), "InvalidRange", 416);
});

step("binary/octet-stream where nobody named a type", async () => {
  await fetched(await sign("PutObject", { Key: "typeless" }), { method: "PUT", body: new Uint8Array(3) }, 200);
  const { UploadId } = await send("CreateMultipartUpload", { Key: "typeless-parts" });
  const { ETag } = await send("UploadPart", { Key: "typeless-parts", UploadId, PartNumber: 1, Body: "x" });
  await send("CompleteMultipartUpload", { Key: "typeless-parts", UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } });
  await send("CopyObject", { Key: "typeless-replaced", CopySource: `${Bucket}/five`, MetadataDirective: "REPLACE" });
  await send("CopyObject", { Key: "typeless-copy", CopySource: `${Bucket}/typeless` });
  const { url, fields } = await createPresignedPost(s3, { Bucket, Key: "typeless-form" });
  await fetched(url, form(fields, "x", "f.png", "image/png"), 204);
  for (const Key of ["typeless", "typeless-parts", "typeless-replaced", "typeless-copy", "typeless-form"]) {
    assert.equal((await head(Key)).ContentType, "binary/octet-stream", Key);
    assert.equal((await send("GetObject", { Key, Range: "bytes=0-0" })).ContentType, "binary/octet-stream", Key);
  }
  assert.equal((await head("five")).ContentType, "text/x");
});

step("a copy onto itself that names a storage class", async () => {
  const self = (StorageClass) => send("CopyObject", { Key: "five", CopySource: `${Bucket}/five`, StorageClass });
  for (const StorageClass of ["STANDARD", "STANDARD_IA", "STANDARD_IA", "STANDARD"]) {
    await self(StorageClass);
    const { Contents } = await send("ListObjectsV2", { Prefix: "five" });
    assert.equal(Contents[0].StorageClass, StorageClass);
  }
  await fails(self(undefined), "InvalidRequest", 400);
});

step("Content-Encoding on two lines", async () => {
  const url = await sign("PutObject", { Key: "encoded" });
  for (const [lines, kept] of [[["gzip", "br"], "gzip,br"], [["gzip"], "gzip"]]) {
    const { status, text } = await raw(url, { method: "PUT", headers: { "content-encoding": lines, "content-length": 1 }, body: "x" });
    assert.equal(status, 200, text);
    assert.equal((await head("encoded")).ContentEncoding.replaceAll(" ", ""), kept);
  }
  const { status } = await raw(url, { method: "PUT", headers: { "content-type": ["a/b", "c/d"], "content-length": 1 }, body: "x" });
  assert.notEqual(status, 200, "a type on two lines");
  // What the SDK itself adds to the encoding of a body whose checksum comes after it: signed as one, sent on one line and on two.
  for (const lines of [["gzip,aws-chunked"], ["gzip", "aws-chunked"], ["aws-chunked", "gzip"]]) {
    const command = new aws.PutObjectCommand({ Bucket, Key: "encoded", Body: Readable.from(["x"]), ContentLength: 1, ContentEncoding: "gzip" });
    const set = (value) => (next) => (args) => {
      assert.equal(typeof args.request.headers["content-encoding"], "string");
      args.request.headers["content-encoding"] = value;
      return next(args);
    };
    command.middlewareStack.add(set(lines.join(",")), { step: "build", priority: "low" });
    command.middlewareStack.add(set(lines), { step: "deserialize", priority: "low" });
    await s3.send(command);
    assert.equal((await head("encoded")).ContentEncoding, "gzip");
    assert.equal(await (await send("GetObject", { Key: "encoded" })).Body.transformToString(), "x");
  }
});

step("metadata beyond ASCII", async () => {
  const long = "Größe 漢字 ".repeat(20).trim();
  for (const value of ["Miniö", "漢字", "\u{1f600}", "a=?b?=ü", long]) {
    await fetched(await sign("PutObject", { Key: "beyond", Metadata: { u: value, plain: "=as it = came_" } }), { method: "PUT", body: "x" }, 200);
    await send("CopyObject", { Key: "beyond-copy", CopySource: `${Bucket}/beyond` });
    for (const Key of ["beyond", "beyond-copy"]) {
      const { lines } = await raw(await sign("GetObject", { Key }));
      const got = (name) => lines[lines.findIndex((line) => line.toLowerCase() === name) + 1];
      assert.equal(decoded(got("x-amz-meta-u")), value, Key);
      assert.equal(got("x-amz-meta-plain"), "=as it = came_");
    }
  }
  const { url, fields } = await createPresignedPost(s3, { Bucket, Key: "beyond-form", Fields: { "x-amz-meta-u": "Miniö" } });
  await fetched(url, form(fields, "x", "f"), 204);
  assert.equal(decoded((await head("beyond-form")).Metadata.u), "Miniö");
});

step("forms: ${filename} in every field", async () => {
  const Fields = {
    success_action_redirect: "http://h.test/x?f=${filename}", "x-amz-meta-name": "of ${filename}", "Content-Disposition": 'attachment; filename="${filename}"',
  };
  const Conditions = [["starts-with", "$success_action_redirect", "http://h.test/"], ["starts-with", "$x-amz-meta-name", "of f"],
    ["starts-with", "$Content-Disposition", 'attachment; filename="f.txt"']];
  const post = await createPresignedPost(s3, { Bucket, Key: "up/${filename}", Conditions });
  const { headers } = await fetched(post.url, form({ ...Fields, ...post.fields }, "x", "f.txt"), 303);
  assert.match(headers.get("location"), /^http:\/\/h\.test\/x\?f=f\.txt&bucket=/);
  const got = await head("up/f.txt");
  assert.deepEqual([got.Metadata.name, got.ContentDisposition], ["of f.txt", 'attachment; filename="f.txt"']);
  // The conditions are of what it becomes.
  await fetched(post.url, form({ ...Fields, ...post.fields }, "x", "g.txt"), 403);
});

step("forms: numbers of a policy may be strings", async () => {
  const { url, fields } = await createPresignedPost(s3, { Bucket, Key: "length", Conditions: [["content-length-range", "2", "10"]] });
  await fetched(url, form(fields, "12345", "f"), 204);
  assert.match((await fetched(url, form(fields, "12345678901", "f"), 400)).text, /EntityTooLarge/);
  assert.match((await fetched(url, form(fields, "1", "f"), 400)).text, /EntityTooSmall/);
  const bad = await createPresignedPost(s3, { Bucket, Key: "length", Conditions: [["content-length-range", "two", "10"]] });
  await fetched(bad.url, form(bad.fields, "12345", "f"), 400);
});

step("forms: each type of a list must meet the prefix", async () => {
  const { url, fields } = await createPresignedPost(s3, { Bucket, Key: "image", Conditions: [["starts-with", "$Content-Type", "image/"]] });
  for (const [type, status] of [["image/png", 204], ["image/png,image/gif", 204], ["image/png,text/plain", 403], ["image/png, text/html", 403], ["text/html", 403]]) {
    await send("DeleteObject", { Key: "image" });
    await fetched(url, form({ ...fields, "Content-Type": type }, "x", "f.png"), status);
    if (status === 403) await assert.rejects(head("image"), { name: "NotFound" });
  }
});

step("CreateBucket with tags", async () => {
  const tagged = (name, Tags) => s3.send(new aws.CreateBucketCommand({ Bucket: name, CreateBucketConfiguration: { Tags } }));
  const TagSet = [{ Key: "env", Value: "dev" }, { Key: "of a", Value: "" }];
  await tagged("sdk3-tagged", TagSet);
  const got = (await send("GetBucketTagging", { Bucket: "sdk3-tagged" })).TagSet;
  assert.deepEqual(got.sort((a, b) => (a.Key < b.Key ? -1 : 1)), TagSet);
  await tagged("sdk3-untagged", []);
  await assert.rejects(send("GetBucketTagging", { Bucket: "sdk3-untagged" }), { name: "NoSuchTagSet" });
  // Judged as PutBucketTagging judges them, and with them the bucket.
  const twice = [{ Key: "k", Value: "1" }, { Key: "k", Value: "2" }];
  const refusal = await send("PutBucketTagging", { Tagging: { TagSet: twice } }).catch((e) => e);
  await fails(tagged("sdk3-refused", twice), refusal.name, refusal.$metadata.httpStatusCode);
  await assert.rejects(send("HeadBucket", { Bucket: "sdk3-refused" }), { name: "NotFound" });
});

step("upload-id-marker without key-marker", async () => {
  const { UploadId } = await send("CreateMultipartUpload", { Key: "marked" });
  const got = await send("ListMultipartUploads", { UploadIdMarker: "garbage" });
  assert(got.Uploads.some((u) => u.UploadId === UploadId));
  assert(!got.UploadIdMarker);
  await fails(send("ListMultipartUploads", { KeyMarker: "a", UploadIdMarker: "garbage" }), "InvalidArgument", 400);
  await send("AbortMultipartUpload", { Key: "marked", UploadId });
});

step("x-amz-content-sha256 with a URL need not be signed", async () => {
  const url = await sign("PutObject", { Key: "unsigned" });
  for (const value of ["UNSIGNED-PAYLOAD", "0".repeat(64)]) await fetched(url, { method: "PUT", body: value, headers: { "x-amz-content-sha256": value } }, 200);
  for (const name of ["x-amz-storage-class", "x-amz-meta-x", "x-amz-acl"])
    await fetched(url, { method: "PUT", body: "x", headers: { [name]: name === "x-amz-acl" ? "private" : "STANDARD" } }, 403);
});

step("versioning that is suspended where there are no versions", async () => {
  await send("PutBucketVersioning", { VersioningConfiguration: { Status: "Suspended" } });
  assert([undefined, "Suspended"].includes((await send("GetBucketVersioning", {})).Status));
  await fails(send("PutBucketVersioning", { VersioningConfiguration: { Status: "Enabled" } }), "NotImplemented", 501);
});

step("the spelling of header names", async () => {
  const spelled = {
    etag: "ETag", "content-type": "Content-Type", "content-length": "Content-Length", "content-range": "Content-Range", "last-modified": "Last-Modified",
    "accept-ranges": "Accept-Ranges", date: "Date", server: "Server", location: "Location", connection: "Connection", "cache-control": "Cache-Control",
    "content-disposition": "Content-Disposition", "content-encoding": "Content-Encoding", "content-language": "Content-Language", expires: "Expires",
    "access-control-allow-origin": "Access-Control-Allow-Origin", "access-control-allow-methods": "Access-Control-Allow-Methods", vary: "Vary",
    "access-control-allow-headers": "Access-Control-Allow-Headers", "access-control-expose-headers": "Access-Control-Expose-Headers",
    "access-control-max-age": "Access-Control-Max-Age", "transfer-encoding": "Transfer-Encoding", "x-content-type-options": "X-Content-Type-Options",
    "access-control-allow-credentials": "Access-Control-Allow-Credentials", "keep-alive": "Keep-Alive", allow: "Allow", "retry-after": "Retry-After",
  };
  await send("PutBucketCors", { CORSConfiguration: { CORSRules: [{ AllowedOrigins: ["*"], AllowedMethods: ["GET"], AllowedHeaders: ["*"],
    ExposeHeaders: ["ETag"], MaxAgeSeconds: 5 }] } });
  await send("PutObject", { Key: "spelled", Body: "12345", CacheControl: "no-cache", ContentDisposition: "inline", ContentEncoding: "x", ContentLanguage: "de",
    Expires: new Date(2e12), Metadata: { a: "b" }, ChecksumAlgorithm: "SHA256" });
  const { UploadId } = await send("CreateMultipartUpload", { Key: "spelled-parts" });
  const post = await createPresignedPost(s3, { Bucket, Key: "spelled-form", Fields: { success_action_status: "201" } });
  const boundary = "XX";
  const body = Object.entries({ ...post.fields, file: "x" }).map(([k, v]) => `--${boundary}\r\nContent-Disposition: form-data; name="${k}"\r\n\r\n${v}\r\n`).join("") +
    `--${boundary}--\r\n`;
  const origin = { origin: "http://app.test" };
  const requests = [
    [200, ["etag"], await sign("PutObject", { Key: "spelled-put" }), { method: "PUT", body: "x", headers: { "content-length": 1 } }],
    [200, ["etag"], await sign("UploadPart", { Key: "spelled-parts", UploadId, PartNumber: 1 }), { method: "PUT", body: "x", headers: { "content-length": 1 } }],
    [200, ["etag", "last-modified", "content-length", "accept-ranges", "cache-control", "content-disposition", "content-encoding", "content-language", "expires",
      "access-control-allow-origin"], await sign("GetObject", { Key: "spelled", ChecksumMode: "ENABLED" }), { headers: origin }],
    [206, ["etag", "content-range", "content-type"], await sign("GetObject", { Key: "spelled" }), { headers: { range: "bytes=1-2" } }],
    [304, ["etag"], await sign("GetObject", { Key: "spelled" }), { headers: { "if-none-match": "*" } }],
    [200, ["etag", "last-modified", "content-length"], await sign("HeadObject", { Key: "spelled" }), { method: "HEAD" }],
    [200, ["content-type"], await sign("ListObjectsV2", {}), {}],
    [404, ["content-type"], await sign("GetObject", { Key: "absent" }), {}],
    [416, ["content-type"], await sign("GetObject", { Key: "spelled" }), { headers: { range: "bytes=9-" } }],
    [403, ["content-type"], tampered(await sign("GetObject", { Key: "spelled" })), {}],
    [200, ["access-control-allow-origin", "access-control-allow-methods", "access-control-max-age"], await sign("GetObject", { Key: "spelled" }),
      { method: "OPTIONS", headers: { ...origin, "access-control-request-method": "GET" } }],
    [201, ["etag", "location"], post.url, { method: "POST", body, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } }],
    [204, ["date"], await sign("DeleteObject", { Key: "spelled-put" }), { method: "DELETE" }],
    [200, ["location"], await sign("CreateBucket", {}), { method: "PUT", headers: { "content-length": 0 } }],
  ];
  const wrong = [];
  for (const [status, there, url, options] of requests) {
    const got = await raw(url, options);
    const what = `${options.method ?? "GET"} ${status}`;
    assert.equal(got.status, status, `${what}: ${got.text}`);
    const names = got.lines.filter((_, i) => i % 2 === 0);
    for (const name of names)
      if (/^x-(amz|gantry)-/i.test(name) ? name !== name.toLowerCase() : name !== spelled[name.toLowerCase()]) wrong.push(`${what}: ${name}`);
    for (const name of there) assert(names.some((n) => n.toLowerCase() === name), `${what}: no ${name} in ${names}`);
  }
  assert.equal(wrong.length, 0, `\n${wrong.join("\n")}`);
  await send("AbortMultipartUpload", { Key: "spelled-parts", UploadId });
  await send("DeleteBucketCors", {});
});

step("CompleteMultipartUpload with If-Match where there is no object", async () => {
  const { UploadId } = await send("CreateMultipartUpload", { Key: "if" });
  const { ETag } = await send("UploadPart", { Key: "if", UploadId, PartNumber: 1, Body: "x" });
  const complete = (more) => send("CompleteMultipartUpload", { Key: "if", UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] }, ...more });
  await fails(complete({ IfMatch: '"x"' }), "NoSuchKey", 404);
  assert.equal((await send("ListParts", { Key: "if", UploadId })).Parts.length, 1);
  await complete({ IfNoneMatch: "*" });
});

await run("sdk3");
