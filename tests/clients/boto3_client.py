#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""boto3 against the daemon at URL_S3: every operation that boto3 can express and Gantry serves (tests/clients/boto3.sh)."""
import base64
import datetime
import hashlib
import io
import os
import random
import threading
import urllib.error
import urllib.request
import zlib

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

URL, BIG = os.environ["URL_S3"], int(os.environ["BIG"])
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
print(f"SEED={SEED}")
rng = random.Random(SEED)
STEPS = os.environ.get("STEPS", "").split()  # none: all
MIB = 1 << 20


def client(**kw):
    cfg = Config(s3={"addressing_style": "path", **kw.pop("s3", {})}, retries={"max_attempts": 1}, signature_version=kw.pop("sig", "s3v4"))
    return boto3.client("s3", endpoint_url=URL, config=cfg, **kw)


s3 = client()


def error(code, status, f, *a, **kw):
    try:
        f(*a, **kw)
    except ClientError as e:
        got = e.response["Error"]["Code"], e.response["ResponseMetadata"]["HTTPStatusCode"]
        assert got == (code, status), f"{f.__name__}: {got}, want {(code, status)}"
        return e
    raise AssertionError(f"{f.__name__}: no error, want {code}")


def body(key, bucket="bkt", **kw):
    return s3.get_object(Bucket=bucket, Key=key, **kw)["Body"].read()


def data(n):
    return rng.randbytes(n)


def http(url, method="GET", payload=None, headers=None):
    r = urllib.request.Request(url, data=payload, method=method, headers=headers or {})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r) as a:
            return a.status, a.read(), a.headers
    except urllib.error.HTTPError as e:
        return e.code, e.read(), e.headers


def buckets():
    s3.create_bucket(Bucket="bkt")
    s3.create_bucket(Bucket="bkt")  # one's own, in us-east-1
    assert "bkt" in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    h = s3.head_bucket(Bucket="bkt")["ResponseMetadata"]
    assert h["HTTPStatusCode"] == 200 and h["HTTPHeaders"]["x-amz-bucket-region"] == "us-east-1"
    error("404", 404, s3.head_bucket, Bucket="absent")
    error("NoSuchBucket", 404, s3.list_objects_v2, Bucket="absent")
    for bad in ("Upper", "ab", "a..b", "-a-", "192.168.1.1", "x" * 64):
        code, text, _ = http(f"{URL}/{bad}", "PUT")
        assert code in (400, 403), (bad, code, text)
    assert s3.get_bucket_location(Bucket="bkt")["LocationConstraint"] is None
    assert "Status" not in s3.get_bucket_versioning(Bucket="bkt")
    error("NoSuchLifecycleConfiguration", 404, s3.get_bucket_lifecycle_configuration, Bucket="bkt")
    error("NoSuchCORSConfiguration", 404, s3.get_bucket_cors, Bucket="bkt")
    error("NoSuchTagSet", 404, s3.get_bucket_tagging, Bucket="bkt")
    error("ServerSideEncryptionConfigurationNotFoundError", 404, s3.get_bucket_encryption, Bucket="bkt")
    error("NoSuchBucketPolicy", 404, s3.get_bucket_policy, Bucket="bkt")
    s3.create_bucket(Bucket="gone")
    s3.put_object(Bucket="gone", Key="k", Body=b"x")
    error("BucketNotEmpty", 409, s3.delete_bucket, Bucket="gone")
    s3.delete_object(Bucket="gone", Key="k")
    s3.delete_bucket(Bucket="gone")
    error("NoSuchBucket", 404, s3.put_object, Bucket="gone", Key="k", Body=b"x")


KEYS = ["a", "with blank", "plus+", "per%25cent", "ünï/cödé ☃", "日本語", "q?uery&x=y", "semi;colon,:@$=!*'()", "//slashes//",
        "dots/../x/./y", "~tilde", "back\\slash", "trailing/", "\U0001f600", "k" * 1024, "new\u00a0space", "<xml>&amp;\"'"]


def odd_keys():
    for i, k in enumerate(KEYS):
        d = data(i * 37 + 1)
        s3.put_object(Bucket="bkt", Key="odd/" + k if len(k) < 1000 else k, Body=d)
        assert body("odd/" + k if len(k) < 1000 else k) == d, k
    have = [o["Key"] for p in s3.get_paginator("list_objects_v2").paginate(Bucket="bkt", PaginationConfig={"PageSize": 3})
            for o in p.get("Contents", [])]
    want = sorted(("odd/" + k if len(k) < 1000 else k for k in KEYS), key=lambda k: k.encode())
    assert have == want, (have, want)
    error("KeyTooLongError", 400, s3.put_object, Bucket="bkt", Key="k" * 1025, Body=b"")
    s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": k} for k in want]})
    assert s3.list_objects_v2(Bucket="bkt")["KeyCount"] == 0


def objects():
    for n in (0, 1, 255, 256, 257, 4096, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB + 7):
        d = data(n)
        r = s3.put_object(Bucket="bkt", Key=f"o{n}", Body=d, Metadata={"n": str(n), "two": "a  b"}, ContentType="text/x")
        assert r["ETag"] == f'"{hashlib.md5(d).hexdigest()}"'
        g = s3.get_object(Bucket="bkt", Key=f"o{n}")
        assert g["Body"].read() == d and g["ETag"] == r["ETag"] and g["Metadata"]["n"] == str(n) and g["ContentType"] == "text/x"
        h = s3.head_object(Bucket="bkt", Key=f"o{n}")
        assert h["ContentLength"] == n and h["ETag"] == r["ETag"] and abs((h["LastModified"] - datetime.datetime.now(
            datetime.timezone.utc)).total_seconds()) < 300
        for _ in range(5 if n else 0):
            a = rng.randrange(n)
            b = rng.randrange(a, n + 5)
            g = s3.get_object(Bucket="bkt", Key=f"o{n}", Range=f"bytes={a}-{b}")
            assert g["Body"].read() == d[a:b + 1] and g["ContentRange"] == f"bytes {a}-{min(b, n - 1)}/{n}"
        if n:
            k = rng.randrange(1, n + 1)
            assert body(f"o{n}", Range=f"bytes=-{k}") == d[-k:]
            assert body(f"o{n}", Range=f"bytes={n - 1}-") == d[-1:]
        error("InvalidRange", 416, s3.get_object, Bucket="bkt", Key=f"o{n}", Range=f"bytes={n}-")
    error("NoSuchKey", 404, s3.get_object, Bucket="bkt", Key="absent")
    error("404", 404, s3.head_object, Bucket="bkt", Key="absent")
    g = s3.get_object(Bucket="bkt", Key="o1", ResponseContentType="a/b", ResponseContentDisposition="attachment",
                      ResponseCacheControl="no-store", ResponseContentLanguage="fr", ResponseContentEncoding="x",
                      ResponseExpires=datetime.datetime(2030, 1, 1))
    assert (g["ContentType"], g["ContentDisposition"], g["CacheControl"], g["ContentLanguage"], g["ContentEncoding"]) == (
        "a/b", "attachment", "no-store", "fr", "x")
    d = data(1000)
    md5 = base64.b64encode(hashlib.md5(d).digest()).decode()
    s3.put_object(Bucket="bkt", Key="md5", Body=d, ContentMD5=md5)
    error("BadDigest", 400, s3.put_object, Bucket="bkt", Key="md5", Body=d + b"x", ContentMD5=md5)
    error("InvalidDigest", 400, s3.put_object, Bucket="bkt", Key="md5", Body=d, ContentMD5="abc")
    assert body("md5") == d


def facts():
    """What boto3 of any version relies on (docs/s3.md)."""
    s3.put_object(Bucket="bkt", Key="fact", Body=b"x", Metadata={"empty": "", "full": "1"})
    for f in s3.head_object, s3.get_object:
        assert f(Bucket="bkt", Key="fact")["Metadata"] == {"empty": "", "full": "1"}
    s3.put_object(Bucket="bkt", Key="fact", Body=b"x", ContentType="own/own", CacheControl="own")
    g = s3.get_object(Bucket="bkt", Key="fact", ResponseContentType="x/y", ResponseContentDisposition="attachment; filename=z",
                      ResponseCacheControl="no-cache")
    assert (g["ContentType"], g["ContentDisposition"], g["CacheControl"]) == ("x/y", "attachment; filename=z", "no-cache")
    for what in "Analytics", "Inventory", "Metrics", "IntelligentTiering":
        r = getattr(s3, {"Analytics": "list_bucket_analytics_configurations", "Inventory": "list_bucket_inventory_configurations",
                         "Metrics": "list_bucket_metrics_configurations",
                         "IntelligentTiering": "list_bucket_intelligent_tiering_configurations"}[what])(Bucket="bkt")
        assert r["IsTruncated"] is False and what + "ConfigurationList" not in r, r
    error("NoSuchConfiguration", 404, s3.get_bucket_metrics_configuration, Bucket="bkt", Id="x")
    error("InvalidRequest", 400, s3.get_object_retention, Bucket="bkt", Key="fact")
    # A call that asks for what is so anyway succeeds, and what is read back then is what was set.
    block = {k: True for k in ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")}
    error("NoSuchPublicAccessBlockConfiguration", 404, s3.get_public_access_block, Bucket="bkt")
    error("NotImplemented", 501, s3.put_public_access_block, Bucket="bkt", PublicAccessBlockConfiguration={**block, "BlockPublicAcls": False})
    error("NotImplemented", 501, s3.put_public_access_block, Bucket="bkt", PublicAccessBlockConfiguration={"BlockPublicAcls": True})
    s3.put_public_access_block(Bucket="bkt", PublicAccessBlockConfiguration=block)
    assert s3.get_public_access_block(Bucket="bkt")["PublicAccessBlockConfiguration"] == block
    owner = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    error("NotImplemented", 501, s3.put_bucket_ownership_controls, Bucket="bkt", OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]})
    s3.put_bucket_ownership_controls(Bucket="bkt", OwnershipControls=owner)
    assert s3.get_bucket_ownership_controls(Bucket="bkt")["OwnershipControls"] == owner
    for _ in range(2):
        s3.delete_public_access_block(Bucket="bkt")
        s3.delete_bucket_ownership_controls(Bucket="bkt")
    error("NoSuchPublicAccessBlockConfiguration", 404, s3.get_public_access_block, Bucket="bkt")
    error("OwnershipControlsNotFoundError", 404, s3.get_bucket_ownership_controls, Bucket="bkt")
    s3.put_bucket_request_payment(Bucket="bkt", RequestPaymentConfiguration={"Payer": "BucketOwner"})
    error("NotImplemented", 501, s3.put_bucket_request_payment, Bucket="bkt", RequestPaymentConfiguration={"Payer": "Requester"})
    s3.put_bucket_notification_configuration(Bucket="bkt", NotificationConfiguration={})
    error("NotImplemented", 501, s3.put_bucket_notification_configuration, Bucket="bkt", NotificationConfiguration={
        "TopicConfigurations": [{"TopicArn": "arn:aws:sns:us-east-1:1:t", "Events": ["s3:ObjectCreated:*"]}]})
    s3.put_bucket_accelerate_configuration(Bucket="bkt", AccelerateConfiguration={"Status": "Suspended"})
    error("NotImplemented", 501, s3.put_bucket_accelerate_configuration, Bucket="bkt", AccelerateConfiguration={"Status": "Enabled"})
    for what in "policy", "website", "encryption", "replication":
        r = getattr(s3, "delete_bucket_" + what)(Bucket="bkt")
        assert r["ResponseMetadata"]["HTTPStatusCode"] == 204, what
        error("NoSuchBucket", 404, getattr(s3, "delete_bucket_" + what), Bucket="absent")
    error("InvalidRequest", 400, s3.put_object_legal_hold, Bucket="bkt", Key="fact", LegalHold={"Status": "ON"})
    s3.delete_object(Bucket="bkt", Key="fact")


def conditions():
    old = s3.put_object(Bucket="bkt", Key="c", Body=b"one")["ETag"]
    lm = s3.head_object(Bucket="bkt", Key="c")["LastModified"]
    later, before = lm + datetime.timedelta(seconds=3600), lm - datetime.timedelta(seconds=3600)
    assert body("c", IfMatch=old) == b"one"
    error("304", 304, s3.get_object, Bucket="bkt", Key="c", IfNoneMatch=old)
    error("PreconditionFailed", 412, s3.get_object, Bucket="bkt", Key="c", IfMatch='"0"')
    error("304", 304, s3.get_object, Bucket="bkt", Key="c", IfModifiedSince=lm)
    assert body("c", IfModifiedSince=before) == b"one"
    error("PreconditionFailed", 412, s3.get_object, Bucket="bkt", Key="c", IfUnmodifiedSince=before)
    assert body("c", IfUnmodifiedSince=later) == b"one"
    error("412", 412, s3.head_object, Bucket="bkt", Key="c", IfMatch='"0"')

    def put_if(**headers):
        def add(request, **kw):
            for k, v in headers.items():
                request.headers[k.replace("_", "-")] = v
        c = client()
        c.meta.events.register("before-sign.s3.PutObject", add)
        return c
    error("PreconditionFailed", 412, put_if(If_None_Match="*").put_object, Bucket="bkt", Key="c", Body=b"x")
    error("PreconditionFailed", 412, put_if(If_Match='"0"').put_object, Bucket="bkt", Key="c", Body=b"x")
    error("NoSuchKey", 404, put_if(If_Match='"0"').put_object, Bucket="bkt", Key="absent", Body=b"x")
    put_if(If_Match=old).put_object(Bucket="bkt", Key="c", Body=b"two")
    assert body("c") == b"two"
    put_if(If_None_Match="*").put_object(Bucket="bkt", Key="c2", Body=b"new")


def copies():
    d = data(2 * MIB + 5)
    e = s3.put_object(Bucket="bkt", Key="src key/ü", Body=d, Metadata={"m": "1"}, ContentType="x/y", Tagging="t=1")["ETag"]
    r = s3.copy_object(Bucket="bkt", Key="dst", CopySource={"Bucket": "bkt", "Key": "src key/ü"})
    assert r["CopyObjectResult"]["ETag"] == e
    h = s3.get_object(Bucket="bkt", Key="dst")
    assert h["Body"].read() == d and h["Metadata"] == {"m": "1"} and h["ContentType"] == "x/y"
    assert s3.get_object_tagging(Bucket="bkt", Key="dst")["TagSet"] == [{"Key": "t", "Value": "1"}]
    s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/src key/ü", MetadataDirective="REPLACE", Metadata={"z": "9"},
                   TaggingDirective="REPLACE", Tagging="u=2", ContentType="p/q")
    h = s3.head_object(Bucket="bkt", Key="dst")
    assert h["Metadata"] == {"z": "9"} and h["ContentType"] == "p/q"
    assert s3.get_object_tagging(Bucket="bkt", Key="dst")["TagSet"] == [{"Key": "u", "Value": "2"}]
    error("InvalidRequest", 400, s3.copy_object, Bucket="bkt", Key="dst", CopySource="bkt/dst")
    s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/dst", MetadataDirective="REPLACE", Metadata={"self": "yes"})
    assert s3.head_object(Bucket="bkt", Key="dst")["Metadata"] == {"self": "yes"} and body("dst") == d
    error("NoSuchKey", 404, s3.copy_object, Bucket="bkt", Key="dst", CopySource="bkt/absent")
    error("NoSuchBucket", 404, s3.copy_object, Bucket="bkt", Key="dst", CopySource="nobucket/absent")
    error("PreconditionFailed", 412, s3.copy_object, Bucket="bkt", Key="x", CopySource="bkt/dst", CopySourceIfMatch='"0"')
    error("PreconditionFailed", 412, s3.copy_object, Bucket="bkt", Key="x", CopySource="bkt/dst", CopySourceIfNoneMatch=e)
    s3.create_bucket(Bucket="other")
    s3.copy_object(Bucket="other", Key="k", CopySource="bkt/dst")
    assert body("k", "other") == d


def multipart():
    big = data(BIG + 4321)
    cfg = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=8)
    s3.upload_fileobj(io.BytesIO(big), "bkt", "big", Config=cfg, ExtraArgs={"Metadata": {"a": "b"}})
    out = io.BytesIO()
    s3.download_fileobj("bkt", "big", out, Config=cfg)
    assert out.getvalue() == big
    n = (len(big) + 5 * MIB - 1) // (5 * MIB)
    md5s = b"".join(hashlib.md5(big[i:i + 5 * MIB]).digest() for i in range(0, len(big), 5 * MIB))
    h = s3.head_object(Bucket="bkt", Key="big")
    assert h["ETag"] == f'"{hashlib.md5(md5s).hexdigest()}-{n}"' and h["Metadata"] == {"a": "b"} and h["ContentLength"] == len(big)
    for _ in range(20):
        a = rng.randrange(len(big))
        b = min(len(big), a + rng.randrange(1, 3 * MIB))
        assert body("big", Range=f"bytes={a}-{b - 1}") == big[a:b]
    g = s3.get_object(Bucket="bkt", Key="big", PartNumber=2)
    assert g["Body"].read() == big[5 * MIB:10 * MIB] and g["PartsCount"] == n
    error("InvalidPartNumber", 416, s3.get_object, Bucket="bkt", Key="big", PartNumber=n + 1)
    s3.copy({"Bucket": "bkt", "Key": "big"}, "bkt", "bigcopy", Config=cfg)
    assert body("bigcopy") == big

    # Odd sizes, out of order, replaced, listed by pages
    u = s3.create_multipart_upload(Bucket="bkt", Key="odd")["UploadId"]
    parts = {p: data(5 * MIB + rng.randrange(1, 100000)) for p in (3, 10, 11, 900)}
    parts[10000] = data(77)
    etags = {}
    for p in rng.sample(list(parts), len(parts)):
        s3.upload_part(Bucket="bkt", Key="odd", UploadId=u, PartNumber=p, Body=b"replaced later")
        etags[p] = s3.upload_part(Bucket="bkt", Key="odd", UploadId=u, PartNumber=p, Body=parts[p])["ETag"]
    listed = [(q["PartNumber"], q["Size"], q["ETag"]) for page in s3.get_paginator("list_parts").paginate(
        Bucket="bkt", Key="odd", UploadId=u, PaginationConfig={"PageSize": 2}) for q in page["Parts"]]
    assert listed == [(p, len(parts[p]), etags[p]) for p in sorted(parts)], listed
    def done(nrs, tags=etags):
        return {"Bucket": "bkt", "Key": "odd", "UploadId": u,
                "MultipartUpload": {"Parts": [{"PartNumber": p, "ETag": tags[p]} for p in nrs]}}
    error("InvalidPart", 400, s3.complete_multipart_upload, **done([3, 10, 12], {**etags, 12: etags[3]}))
    error("InvalidPart", 400, s3.complete_multipart_upload, **done([3, 10], {**etags, 10: etags[3]}))
    error("InvalidPartOrder", 400, s3.complete_multipart_upload, **done([10, 3]))
    error("EntityTooSmall", 400, s3.complete_multipart_upload, **done([3, 10000][::-1][1:] + [10000] + [], etags) if False else
          {**done([3]), "MultipartUpload": {"Parts": [{"PartNumber": 3, "ETag": etags[3]},
                                                      {"PartNumber": 9999, "ETag": s3.upload_part(Bucket="bkt", Key="odd", UploadId=u,
                                                                                                  PartNumber=9999, Body=b"x")["ETag"]},
                                                      {"PartNumber": 10000, "ETag": etags[10000]}]}})
    r = s3.complete_multipart_upload(**done(sorted(parts)))
    whole = b"".join(parts[p] for p in sorted(parts))
    assert body("odd") == whole and r["ETag"].endswith('-5"')
    again = s3.complete_multipart_upload(**done(sorted(parts)))  # a retry of an SDK
    assert again["ETag"] == r["ETag"]
    at = 0
    for p in sorted(parts):
        assert body("odd", Range=f"bytes={at - 3 if at else 0}-{at + 9}") == whole[at - 3 if at else 0:at + 10]
        at += len(parts[p])
    error("NoSuchUpload", 404, s3.upload_part, Bucket="bkt", Key="odd", UploadId=u, PartNumber=1, Body=b"x")

    # Copies of ranges, mixed with bodies
    u = s3.create_multipart_upload(Bucket="bkt", Key="mix")["UploadId"]
    e1 = s3.upload_part_copy(Bucket="bkt", Key="mix", UploadId=u, PartNumber=1, CopySource="bkt/big",
                             CopySourceRange=f"bytes=12345-{12345 + 5 * MIB + 2}")["CopyPartResult"]["ETag"]
    e2 = s3.upload_part(Bucket="bkt", Key="mix", UploadId=u, PartNumber=2, Body=b"tail")["ETag"]
    error("InvalidArgument", 400, s3.upload_part_copy, Bucket="bkt", Key="mix", UploadId=u, PartNumber=3, CopySource="bkt/big",
          CopySourceRange=f"bytes=0-{len(big)}")
    s3.complete_multipart_upload(Bucket="bkt", Key="mix", UploadId=u,
                                 MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": e1}, {"PartNumber": 2, "ETag": e2}]})
    assert body("mix") == big[12345:12345 + 5 * MIB + 3] + b"tail"

    # Uploads listed and aborted
    ids = {(k, s3.create_multipart_upload(Bucket="bkt", Key=k)["UploadId"]) for k in ("u/a", "u/a", "u/b/c", "v")}
    have = {(x["Key"], x["UploadId"]) for page in s3.get_paginator("list_multipart_uploads").paginate(
        Bucket="bkt", PaginationConfig={"PageSize": 2}) for x in page.get("Uploads", [])}
    assert ids <= have, (ids, have)
    r = s3.list_multipart_uploads(Bucket="bkt", Prefix="u/", Delimiter="/")
    assert [c["Prefix"] for c in r["CommonPrefixes"]] == ["u/b/"] and len(r["Uploads"]) == 2
    for k, i in have:
        s3.abort_multipart_upload(Bucket="bkt", Key=k, UploadId=i)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bkt")
    error("NoSuchUpload", 404, s3.abort_multipart_upload, Bucket="bkt", Key="v", UploadId="nonsense")


def checksums():
    d = data(6 * MIB)
    for alg, value in (("CRC32", zlib.crc32(d).to_bytes(4, "big")), ("SHA1", hashlib.sha1(d).digest()), ("SHA256", hashlib.sha256(d).digest())):
        b64 = base64.b64encode(value).decode()
        r = s3.put_object(Bucket="bkt", Key="s" + alg, Body=d, **{"Checksum" + alg: b64})
        assert r["Checksum" + alg] == b64
        assert s3.head_object(Bucket="bkt", Key="s" + alg, ChecksumMode="ENABLED")["Checksum" + alg] == b64
        assert s3.get_object(Bucket="bkt", Key="s" + alg, ChecksumMode="ENABLED")["Body"].read() == d
        bad = base64.b64encode(bytes(len(value))).decode()
        # boto3 signs the SHA256 of the body too: two that differ are refused before a byte is read.
        error("XAmzContentSHA256Mismatch" if alg == "SHA256" else "BadDigest", 400, s3.put_object, Bucket="bkt", Key="s" + alg, Body=d,
              **{"Checksum" + alg: bad})
        a = s3.get_object_attributes(Bucket="bkt", Key="s" + alg, ObjectAttributes=["Checksum", "ObjectSize", "ETag", "StorageClass"])
        assert a["Checksum"]["Checksum" + alg] == b64 and a["ObjectSize"] == len(d)
    # Composite: each part's, and the whole's
    u = s3.create_multipart_upload(Bucket="bkt", Key="comp", ChecksumAlgorithm="SHA256")["UploadId"]
    parts, sums = [], b""
    for i, p in enumerate((d, d[:1234]), 1):
        r = s3.upload_part(Bucket="bkt", Key="comp", UploadId=u, PartNumber=i, Body=p, ChecksumAlgorithm="SHA256")
        sums += hashlib.sha256(p).digest()
        assert r["ChecksumSHA256"] == base64.b64encode(hashlib.sha256(p).digest()).decode()
        parts.append({"PartNumber": i, "ETag": r["ETag"], "ChecksumSHA256": r["ChecksumSHA256"]})
    r = s3.complete_multipart_upload(Bucket="bkt", Key="comp", UploadId=u, MultipartUpload={"Parts": parts})
    want = base64.b64encode(hashlib.sha256(sums).digest()).decode() + "-2"
    assert r["ChecksumSHA256"] == want, (r["ChecksumSHA256"], want)
    assert s3.head_object(Bucket="bkt", Key="comp", ChecksumMode="ENABLED")["ChecksumSHA256"] == want
    a = s3.get_object_attributes(Bucket="bkt", Key="comp", ObjectAttributes=["ObjectParts"])
    assert [p["Size"] for p in a["ObjectParts"]["Parts"]] == [len(d), 1234] and a["ObjectParts"]["TotalPartsCount"] == 2


def trailers():
    """Over HTTPS: an algorithm named, and boto3 sends the checksum behind the body."""
    sent = []

    def watch(request, **kw):
        if request.headers.get("x-amz-trailer"):
            sent.append((request.headers["x-amz-trailer"], request.headers["x-amz-content-sha256"]))
    s3.meta.events.register("before-send.s3", watch)
    hashes = {"CRC32": lambda b: zlib.crc32(b).to_bytes(4, "big"), "SHA1": lambda b: hashlib.sha1(b).digest(),
              "SHA256": lambda b: hashlib.sha256(b).digest()}
    for alg, f in hashes.items():
        for n in (0, 1, 65536, MIB + 1):
            d = data(n)
            sent.clear()
            r = s3.put_object(Bucket="bkt", Key=f"t{alg}", Body=d, ChecksumAlgorithm=alg)
            want = base64.b64encode(f(d)).decode()
            assert sent == [(b"x-amz-checksum-" + alg.lower().encode(), b"STREAMING-UNSIGNED-PAYLOAD-TRAILER")] or sent == [
                ("x-amz-checksum-" + alg.lower(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER")], (alg, n, sent)
            assert r["Checksum" + alg] == want and r["ETag"] == f'"{hashlib.md5(d).hexdigest()}"', (alg, n, r)
            g = s3.get_object(Bucket="bkt", Key=f"t{alg}", ChecksumMode="ENABLED")
            assert g["Body"].read() == d and g["Checksum" + alg] == want and "ContentEncoding" not in g
        # In parts, by the transfer manager: several at a time, each with its trailer.
        d = data(11 * MIB + 5)
        s3.upload_fileobj(io.BytesIO(d), "bkt", f"m{alg}", ExtraArgs={"ChecksumAlgorithm": alg},
                          Config=TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=3))
        parts = [d[i:i + 5 * MIB] for i in range(0, len(d), 5 * MIB)]
        want = base64.b64encode(f(b"".join(f(p) for p in parts))).decode() + f"-{len(parts)}"
        h = s3.head_object(Bucket="bkt", Key=f"m{alg}", ChecksumMode="ENABLED")
        assert h["Checksum" + alg] == want and body(f"m{alg}") == d, (alg, h)
    s3.meta.events.unregister("before-send.s3", watch)


def tagging():
    s3.put_object(Bucket="bkt", Key="t", Body=b"x", Tagging="a=1&b=%C3%BC%20y")
    assert s3.get_object(Bucket="bkt", Key="t")["TagCount"] == 2
    assert s3.get_object_tagging(Bucket="bkt", Key="t")["TagSet"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "ü y"}]
    before = s3.head_object(Bucket="bkt", Key="t")
    s3.put_object_tagging(Bucket="bkt", Key="t", Tagging={"TagSet": [{"Key": "n", "Value": ""}]})
    after = s3.head_object(Bucket="bkt", Key="t")
    assert s3.get_object_tagging(Bucket="bkt", Key="t")["TagSet"] == [{"Key": "n", "Value": ""}]
    assert (before["ETag"], before["LastModified"]) == (after["ETag"], after["LastModified"]) and body("t") == b"x"
    s3.delete_object_tagging(Bucket="bkt", Key="t")
    assert s3.get_object_tagging(Bucket="bkt", Key="t")["TagSet"] == []
    error("NoSuchKey", 404, s3.get_object_tagging, Bucket="bkt", Key="absent")
    for bad in ([{"Key": "k", "Value": "1"}, {"Key": "k", "Value": "2"}], [{"Key": "k" * 129, "Value": ""}],
                [{"Key": "k", "Value": "v" * 257}], [{"Key": str(i), "Value": ""} for i in range(11)]):
        try:
            s3.put_object_tagging(Bucket="bkt", Key="t", Tagging={"TagSet": bad})
            raise AssertionError(f"taken: {bad}")
        except ClientError as e:
            assert e.response["Error"]["Code"] in ("InvalidTag", "BadRequest", "InvalidArgument"), e
    s3.put_bucket_tagging(Bucket="bkt", Tagging={"TagSet": [{"Key": "x", "Value": "y"}]})
    assert s3.get_bucket_tagging(Bucket="bkt")["TagSet"] == [{"Key": "x", "Value": "y"}]
    s3.delete_bucket_tagging(Bucket="bkt")


def listing():
    s3.create_bucket(Bucket="list")
    keys = sorted({f"{rng.choice('abc')}/{rng.choice('xyz')}/{rng.randrange(1000):03d}" for _ in range(120)} |
                  {"a", "b.txt", "a-", "a0", "zz/", "zz/1"})
    threads = [threading.Thread(target=lambda part=keys[i::4]: [s3.put_object(Bucket="list", Key=k, Body=k.encode()) for k in part])
               for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    def want(prefix, delimiter, after):
        out, seen = [], set()
        for k in keys:
            if not k.startswith(prefix) or (after and k <= after):
                continue
            i = k.find(delimiter, len(prefix)) if delimiter else -1
            p = k[:i + len(delimiter)] if i >= 0 else None
            if p is None:
                out.append(k)
            elif p not in seen and not (after and p <= after and after.startswith(p) and False):
                seen.add(p)
                out.append(p)
        return out
    for prefix in ("", "a", "a/", "b/x", "c/y/", "nothing"):
        for delimiter in ("", "/", "0"):
            for page in (1, 7, 1000):
                for op, extra in (("list_objects_v2", {}), ("list_objects", {})):
                    got = []
                    for p in s3.get_paginator(op).paginate(Bucket="list", Prefix=prefix, PaginationConfig={"PageSize": page},
                                                           **({"Delimiter": delimiter} if delimiter else {}), **extra):
                        got += sorted([o["Key"] for o in p.get("Contents", [])] + [c["Prefix"] for c in p.get("CommonPrefixes", [])])
                    assert got == want(prefix, delimiter, None), (op, prefix, delimiter, page, got, want(prefix, delimiter, None))
                    if page == 1 and len(prefix) < 2:
                        break
    r = s3.list_objects_v2(Bucket="list", StartAfter="b", MaxKeys=3)
    assert [o["Key"] for o in r["Contents"]] == want("", "", "b")[:3] and r["IsTruncated"]
    assert s3.list_objects_v2(Bucket="list", MaxKeys=0)["KeyCount"] == 0
    assert "Owner" in s3.list_objects_v2(Bucket="list", FetchOwner=True, MaxKeys=1)["Contents"][0]
    v = s3.list_object_versions(Bucket="list", MaxKeys=2)
    assert [x["VersionId"] for x in v["Versions"]] == ["null"] * 2
    error("InvalidArgument", 400, s3.list_objects_v2, Bucket="list", ContinuationToken="nonsense!")
    r = s3.delete_objects(Bucket="list", Delete={"Objects": [{"Key": k} for k in keys] + [{"Key": "absent"}]})
    assert len(r["Deleted"]) == len(keys) + 1 and "Errors" not in r
    s3.delete_bucket(Bucket="list")


def links():
    d = data(100000)
    url = s3.generate_presigned_url("put_object", {"Bucket": "bkt", "Key": "signed ü", "ContentType": "a/b"}, ExpiresIn=60)
    assert http(url, "PUT", d, {"Content-Type": "a/b"})[0] == 200
    assert http(url, "PUT", d, {"Content-Type": "x/y"})[0] == 403
    url = s3.generate_presigned_url("get_object", {"Bucket": "bkt", "Key": "signed ü", "ResponseContentType": "q/r"}, ExpiresIn=60)
    code, got, headers = http(url)
    assert code == 200 and got == d and headers.get_all("Content-Type") == ["q/r"]
    assert http(url.replace("q%2Fr", "q%2Fs"))[0] == 403
    assert http(url.split("?")[0])[0] == 403
    # Metadata that goes with the URL, as SDKs for JavaScript have it.
    def move(request, **_):
        request.params = dict(request.params or {}, **{"x-amz-meta-who": "Jo Ann", "x-amz-tagging": "a=1&b=2"})
    s3.meta.events.register("before-sign.s3.PutObject", move)
    url = s3.generate_presigned_url("put_object", {"Bucket": "bkt", "Key": "moved"}, ExpiresIn=60)
    s3.meta.events.unregister("before-sign.s3.PutObject", move)
    assert http(url.replace("Jo%20Ann", "Jo%20Bob"), "PUT", d)[0] == 403
    assert http(url, "PUT", d)[0] == 200
    assert s3.head_object(Bucket="bkt", Key="moved")["Metadata"] == {"who": "Jo Ann"}
    assert len(s3.get_object_tagging(Bucket="bkt", Key="moved")["TagSet"]) == 2
    post = s3.generate_presigned_post("bkt", "form/${filename}", Fields={"x-amz-meta-a": "b", "success_action_status": "201"},
                                      Conditions=[{"x-amz-meta-a": "b"}, {"success_action_status": "201"},
                                                  ["content-length-range", 1, 200000]], ExpiresIn=60)
    for payload, status in ((d, 201), (b"", 400), (data(200001), 400)):
        form = b""
        for k, v in post["fields"].items():
            form += f'--XX\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode()
        form += b'--XX\r\nContent-Disposition: form-data; name="file"; filename="f.bin"\r\nContent-Type: a/b\r\n\r\n' + payload + b"\r\n--XX--\r\n"
        code, text, _ = http(post["url"], "POST", form, {"Content-Type": "multipart/form-data; boundary=XX"})
        assert code == status, (code, text)
    g = s3.get_object(Bucket="bkt", Key="form/f.bin")
    assert g["Body"].read() == d and g["Metadata"] == {"a": "b"}


def rules():
    s3.put_bucket_lifecycle_configuration(Bucket="bkt", LifecycleConfiguration={"Rules": [
        {"ID": "one", "Status": "Enabled", "Filter": {"And": {"Prefix": "x/", "Tags": [{"Key": "k", "Value": "v"}]}}, "Expiration": {"Days": 5}},
        {"ID": "two", "Status": "Disabled", "Filter": {"Prefix": ""}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}}]})
    r = s3.get_bucket_lifecycle_configuration(Bucket="bkt")["Rules"]
    assert [x["ID"] for x in r] == ["one", "two"] and r[0]["Filter"]["And"]["Tags"] == [{"Key": "k", "Value": "v"}]
    s3.delete_bucket_lifecycle(Bucket="bkt")
    cors = [{"AllowedOrigins": ["https://*.example"], "AllowedMethods": ["GET", "PUT"], "AllowedHeaders": ["x-*"], "ExposeHeaders": ["ETag"],
             "MaxAgeSeconds": 77}]
    s3.put_bucket_cors(Bucket="bkt", CORSConfiguration={"CORSRules": cors})
    assert s3.get_bucket_cors(Bucket="bkt")["CORSRules"] == cors
    code, _, h = http(f"{URL}/bkt/k", "OPTIONS", headers={"Origin": "https://a.example", "Access-Control-Request-Method": "PUT",
                                                          "Access-Control-Request-Headers": "x-amz-date"})
    assert code == 200 and h["Access-Control-Allow-Origin"] in ("https://a.example", "*") and h["Access-Control-Max-Age"] == "77", dict(h)
    assert http(f"{URL}/bkt/k", "OPTIONS", headers={"Origin": "https://b.org", "Access-Control-Request-Method": "PUT"})[0] == 403
    s3.delete_bucket_cors(Bucket="bkt")
    error("NotImplemented", 501, s3.put_bucket_versioning, Bucket="bkt", VersioningConfiguration={"Status": "Enabled"})
    error("NotImplemented", 501, s3.put_bucket_policy, Bucket="bkt", Policy="{}")


def refused():
    wrong = boto3.client("s3", endpoint_url=URL, aws_secret_access_key="wrong", aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
                         config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}))
    error("SignatureDoesNotMatch", 403, wrong.list_buckets)
    unknown = boto3.client("s3", endpoint_url=URL, aws_secret_access_key="x", aws_access_key_id="AKNOBODY",
                           config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}))
    error("InvalidAccessKeyId", 403, unknown.list_buckets)


for step in (buckets, facts, odd_keys, objects, conditions, copies, multipart, checksums, tagging, listing, links, rules, refused,
             trailers):
    if step.__name__ in STEPS or (not STEPS and step is not trailers):
        step()
        print(f"ok    {step.__name__}", flush=True)
