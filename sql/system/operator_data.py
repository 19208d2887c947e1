"""The functions behind operators and ordered-set aggregates, and selectivity estimators, by oid, from PostgreSQL 15."""

from __future__ import annotations

from typing import Final

OPERATOR_FUNCTIONS: Final = """
56:boollt 57:boolgt 60:booleq 63:int2eq 64:int2lt 65:int4eq 66:int4lt 67:texteq 84:boolne 101:eqsel 102:neqsel
103:scalarltsel 104:scalargtsel 105:eqjoinsel 106:neqjoinsel 107:scalarltjoinsel 108:scalargtjoinsel 131:point_above
132:point_left 133:point_right 134:point_below 135:point_eq 139:areasel 140:areajoinsel 141:int4mul 144:int4ne
145:int2ne 146:int2gt 147:int4gt 148:int2le 149:int4le 150:int4ge 151:int2ge 152:int2mul 153:int2div 154:int4div
157:textne 158:int24eq 159:int42eq 160:int24lt 161:int42lt 162:int24gt 163:int42gt 164:int24ne 165:int42ne 166:int24le
167:int42le 168:int24ge 169:int42ge 170:int24mul 171:int42mul 172:int24div 173:int42div 176:int2pl 177:int4pl
178:int24pl 179:int42pl 180:int2mi 181:int4mi 182:int24mi 183:int42mi 202:float4mul 203:float4div 204:float4pl
205:float4mi 216:float8mul 217:float8div 218:float8pl 219:float8mi 279:float48mul 280:float48div 281:float48pl
282:float48mi 283:float84mul 284:float84div 285:float84pl 286:float84mi 287:float4eq 288:float4ne 289:float4lt
290:float4le 291:float4gt 292:float4ge 293:float8eq 294:float8ne 295:float8lt 296:float8le 297:float8gt 298:float8ge
299:float48eq 300:float48ne 301:float48lt 302:float48le 303:float48gt 304:float48ge 305:float84eq 306:float84ne
307:float84lt 308:float84le 309:float84gt 310:float84ge 336:scalarlesel 337:scalargesel 378:array_append
379:array_prepend 383:array_cat 386:scalarlejoinsel 398:scalargejoinsel 463:int8pl 464:int8mi 465:int8mul 466:int8div
467:int8eq 468:int8ne 469:int8lt 470:int8gt 471:int8le 472:int8ge 474:int84eq 475:int84ne 476:int84lt 477:int84gt
478:int84le 479:int84ge 740:text_lt 741:text_le 742:text_gt 743:text_ge 837:int82pl 838:int82mi 839:int82mul
840:int82div 841:int28pl 852:int48eq 853:int48ne 854:int48lt 855:int48gt 856:int48le 857:int48ge 927:network_sub
928:network_subeq 929:network_sup 930:network_supeq 942:int28mi 943:int28mul 948:int28div 988:point_ne 989:point_vert
990:point_horiz 991:point_distance 1086:date_eq 1087:date_lt 1088:date_le 1089:date_gt 1090:date_ge 1091:date_ne
1152:timestamptz_eq 1153:timestamptz_ne 1154:timestamptz_lt 1155:timestamptz_le 1156:timestamptz_ge
1157:timestamptz_gt 1162:interval_eq 1163:interval_ne 1164:interval_lt 1165:interval_le 1166:interval_ge
1167:interval_gt 1258:textcat 1274:int84pl 1275:int84mi 1276:int84mul 1277:int84div 1278:int48pl 1279:int48mi
1280:int48mul 1281:int48div 1300:positionsel 1301:positionjoinsel 1302:contsel 1303:contjoinsel 1441:point_add
1442:point_sub 1443:point_mul 1444:point_div 1691:boolle 1692:boolge 1718:numeric_eq 1719:numeric_ne 1720:numeric_gt
1721:numeric_ge 1722:numeric_lt 1723:numeric_le 1724:numeric_add 1725:numeric_sub 1726:numeric_mul 1727:numeric_div
1729:numeric_mod 1814:iclikesel 1815:icnlikesel 1816:iclikejoinsel 1817:icnlikejoinsel 1818:regexeqsel 1819:likesel
1820:icregexeqsel 1821:regexnesel 1822:nlikesel 1823:icregexnesel 1824:regexeqjoinsel 1825:likejoinsel
1826:icregexeqjoinsel 1827:regexnejoinsel 1828:nlikejoinsel 1829:icregexnejoinsel 1850:int28eq 1851:int28ne
1852:int28lt 1853:int28gt 1854:int28le 1855:int28ge 1856:int82eq 1857:int82ne 1858:int82lt 1859:int82gt 1860:int82le
1861:int82ge 2052:timestamp_eq 2053:timestamp_ne 2054:timestamp_lt 2055:timestamp_le 2056:timestamp_ge
2057:timestamp_gt 3169:rangesel 3214:jsonb_object_field_text 3215:jsonb_array_element 3216:jsonb_array_element_text
3217:jsonb_extract_path 3301:jsonb_concat 3302:jsonb_delete 3304:jsonb_delete_path 3437:prefixsel 3438:prefixjoinsel
3478:jsonb_object_field 3551:network_overlap 3560:networksel 3561:networkjoinsel 3686:tsmatchsel 3687:tsmatchjoinsel
3696:starts_with 3817:arraycontsel 3818:arraycontjoinsel 3857:range_overlaps 3858:range_contains_elem
3859:range_contains 3860:elem_contained_by_range 3861:range_contained_by 3862:range_adjacent 3863:range_before
3864:range_after 3865:range_overleft 3866:range_overright 3867:range_union 3868:range_intersect 3869:range_minus
3940:jsonb_extract_path_text 3947:json_object_field 3948:json_object_field_text 3949:json_array_element
3950:json_array_element_text 3951:json_extract_path 3953:json_extract_path_text 4010:jsonb_path_exists_opr
4011:jsonb_path_match_opr 4046:jsonb_contains 4047:jsonb_exists 4048:jsonb_exists_any 4049:jsonb_exists_all
4050:jsonb_contained 4243:multirangesel 4246:range_overlaps_multirange 4247:multirange_overlaps_range
4248:multirange_overlaps_multirange 4249:multirange_contains_elem 4250:multirange_contains_range
4251:multirange_contains_multirange 4252:elem_contained_by_multirange 4253:range_contained_by_multirange
4254:multirange_contained_by_multirange 4255:range_adjacent_multirange 4256:multirange_adjacent_multirange
4257:multirange_adjacent_range 4258:range_before_multirange 4259:multirange_before_range
4260:multirange_before_multirange 4261:range_after_multirange 4262:multirange_after_range
4263:multirange_after_multirange 4264:range_overleft_multirange 4265:multirange_overleft_range
4266:multirange_overleft_multirange 4267:range_overright_multirange 4268:multirange_overright_range
4269:multirange_overright_multirange 4270:multirange_union 4271:multirange_minus 4272:multirange_intersect
4541:range_contains_multirange 4542:multirange_contained_by_range 5003:tsquery_phrase 5040:matchingsel
5041:matchingjoinsel
"""
ORDERED_SET_FUNCTIONS: Final = """
3970:ordered_set_transition 3971:ordered_set_transition_multi 3973:percentile_disc_final
3975:percentile_cont_float8_final 3977:percentile_cont_interval_final 3979:percentile_disc_multi_final
3981:percentile_cont_float8_multi_final 3983:percentile_cont_interval_multi_final 3985:mode_final 3987:rank_final
3989:percent_rank_final 3991:cume_dist_final 3993:dense_rank_final
"""
